"""Receipts and consent pages in other languages: each message, slots, plural forms, numbers and days."""

import string
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from html_checks import check

import collegium.report
from collegium import Ledger, Policy
from collegium.accounting import Neighbours
from collegium.accounting.neighbours import ROW, Arrangement
from collegium.errors import InputError
from collegium.ledger import Cost
from collegium.report.languages import LANGUAGES, Language
from collegium.report.policy_page import explain
from collegium.report.receipt import receipt_of

FOLDER = Path(collegium.report.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
OTHERS = LANGUAGES[1:]
LEVELS = Policy({"high": 1.0, "low": 3.0})


def marked():
    """Every message that the pages mark, one and many where it has two forms."""
    found = extract_from_dir(FOLDER, keywords={"message": None, "plural": (1, 2)})
    return {text for _, _, text, _, _ in found}


def messages_of(code):
    with (FOLDER / "locale" / code / "LC_MESSAGES" / "collegium.po").open("rb") as file:
        catalogue = read_po(file, locale=code)
    assert not list(catalogue.check())
    return {one.id: one for one in catalogue if one.id}


def test_an_installed_package_has_the_catalogues():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["collegium"]
    packed = {path for pattern in patterns for path in FOLDER.parent.glob(pattern)}
    assert packed >= {*FOLDER.rglob("*.po"), *FOLDER.rglob("*.j2")}
    assert len([path for path in packed if path.suffix == ".po"]) == len(OTHERS)


def forms(text):
    return (text,) if isinstance(text, str) else tuple(text)


def slots(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", OTHERS)
def test_each_catalogue_has_every_message_and_no_other(code):
    found = messages_of(code)
    assert found.keys() == marked()
    assert not [one.id for one in found.values() if one.fuzzy or not all(forms(one.string))]
    same = {one.id for one in found.values() if one.string == one.id}
    assert same <= {"Release", "{day}: {choice}"}  # nothing is left in English


@pytest.mark.parametrize("code", OTHERS)
def test_translations_have_the_slots_of_the_message(code):
    for one in messages_of(code).values():
        asked = set().union(*map(slots, forms(one.id)))
        assert all(slots(form) == asked for form in forms(one.string)), one.id
        # A number, a sign or a level that is lost in translation would be a broken promise.
        kept = {word for word in ("50", "100", "ε", "δ", "= 0") if word in forms(one.id)[0]}
        assert all(word in form for form in forms(one.string) for word in kept), one.id


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "people.ledger")
    people = LEVELS.assign(["high"], owners=["ann"])
    for number in range(2):
        release = made.reserve(
            f"{number}",
            f"Count {number}",
            people,
            {"high": Cost(0.01), "low": Cost(0.0)},
            neighbours=Neighbours.ANY_CHANGE,
        )
        release.settle([Cost(0.005), Cost(0.0)])
    return made


GOLDEN = {
    "en": "Anybody who tries to find out whether your records were used is right at most 56 times in "
    "100; by guessing alone, 50 times.",
    "de": "Wer herauszufinden versucht, ob Ihre Daten verwendet wurden, liegt in höchstens 56 von 100 "
    "Fällen richtig; durch bloßes Raten in 50.",
    "es": "Quien intenta averiguar si se utilizaron sus datos acierta como máximo 56 de cada 100 veces; "
    "adivinando al azar, 50.",
    "fr": "Une personne qui essaie de savoir si vos données ont été utilisées a raison au plus 56 fois sur "
    "100 ; en répondant au hasard, 50 fois.",
    "pl": "Kto próbuje się dowiedzieć, czy Twoje dane zostały użyte, ma rację najwyżej 56 razy na 100; kto "
    "tylko zgaduje, 50 razy.",
}
HOW_THINGS_STAND = {
    "en": "2 releases have used your records. So far, 14.0 % of your budget was used; 86.0 % remains.",
    "de": "2 Veröffentlichungen haben Ihre Daten verwendet. Bisher wurden 14,0 % Ihres Budgets verbraucht; "
    "86,0 % sind noch übrig.",
    "es": "2 publicaciones han utilizado sus datos. Hasta ahora se ha gastado el 14,0 % de su presupuesto; "
    "queda el 86,0 %.",
    "fr": "2 publications ont utilisé vos données. Jusqu’ici, 14,0 % de votre budget ont été consommés ; il "
    "reste 86,0 %.",
    "pl": "2 publikacje użyły Twoich danych. Dotąd zużyto 14,0% Twojego budżetu; pozostało 86,0%.",
}


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_receipt_and_a_consent_page_say_the_same_in_every_language(ledger, code):
    language = Language(code)
    account = ledger.account_of("ann")
    receipt = receipt_of("ann", account, Neighbours.REPLACE, language)
    page = explain(LEVELS, Arrangement(unit=ROW), language=language)
    assert receipt.promise == page.levels[0][1]
    assert " ".join(receipt.promise.words.split()) == GOLDEN[code]
    assert " ".join(receipt.heading.split()) == HOW_THINGS_STAND[code]
    for written in (receipt, page):
        html, text = written.as_html(), " ".join(written.as_text().split())
        assert check(html).all("html")[0].attributes["lang"] == code
        assert GOLDEN[code] in text and "{" not in text
    plain = receipt_of("ann", account).as_text().splitlines()
    left = {line for line in receipt.as_text().splitlines() if line in plain and line.strip()}
    pictures = {line for line in left if set(line.split()) <= set("o+.")}
    assert code == "en" or not left - pictures


def test_polish_has_three_forms_and_french_counts_nothing_as_one():
    forms = ("{n} release has used your records.", "{n} releases have used your records.")
    said = [Language("pl").count(forms, n).split()[1] for n in (1, 2, 5, 12, 22)]
    assert said == ["publikacja", "publikacje", "publikacji", "publikacji", "publikacje"]
    assert Language("fr").count(forms, 0).startswith("0 publication a ")
    assert Language("de").count(forms, 1234).startswith("1.234 Veröffentlichungen ")


@pytest.mark.parametrize(
    ("code", "number", "percent", "day"),
    [
        ("en", "12,345.5", "3.1 %", "4 March 2026"),
        ("de", "12.345,5", "3,1 %", "4. März 2026"),
        ("es", "12.345,5", "3,1 %", "4 de marzo de 2026"),
        ("fr", "12 345,5", "3,1 %", "4 mars 2026"),
        ("pl", "12 345,5", "3,1%", "4 marca 2026"),
    ],
)
def test_numbers_and_days_are_written_as_people_write_them(code, number, percent, day):
    language = Language(code)
    written = (language.number("12345.5"), language.percent("3.1 %"), language.day("2026-03-04"))
    assert tuple(" ".join(one.split()) for one in written) == (number, percent, day)
    assert language.number("1e-5") == "1e-5" and language.percent("—") == "—"
    small = language.number("0.6931")  # no digit that was rounded on purpose is rounded again
    assert Decimal(small.replace(",", ".")) == Decimal("0.6931")


def test_the_commands_speak_them_and_name_those_that_there_are(collegium, ledger, tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text("levels = { high = 1.0 }")
    code, printed, _ = collegium("policy", "explain", file, "--language", "pl")
    assert code == 0 and "Jeśli wybierzesz „high”" in printed
    code, printed, _ = collegium("receipt", "ann", "--ledger", str(ledger), "--language", "de")
    assert code == 0 and "Stufe „high“ (ε = 1)" in printed
    names, out = tmp_path / "names.csv", tmp_path / "out"
    names.write_text("who\nann\nzoe\n")
    everybody = ("receipt", "--all", names, "--ledger", str(ledger), "--out", out)
    code, _, error = collegium(*everybody, "--language", "klingon")
    assert (code, error.count("\n")) == (2, 1) and "one of en, de, es, fr, pl" in error
    assert not out.exists()
    code, _, error = collegium(*everybody, "--language", "fr")
    assert code == 0, error
    assert 'lang="fr"' in (out / "1.html").read_text() and "zoe" in (out / "2.html").read_text()


def test_an_unknown_language_is_refused():
    with pytest.raises(InputError, match="language must be one of en, de, es, fr, pl, got 'it'"):
        Language("it")
