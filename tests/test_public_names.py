"""What `import collegium` offers, and how quickly."""

import subprocess
import sys

import collegium


def test_every_public_name_is_listed_for_tab_completion_and_can_be_imported():
    listed = dir(collegium)
    assert set(collegium.__all__) <= set(listed)
    assert not {"Any", "TYPE_CHECKING"} & set(listed)
    assert listed == sorted(listed)
    for name in listed:
        getattr(collegium, name)


def test_listing_names_imports_nothing():
    code = (
        "import sys, collegium; before = set(sys.modules); names = dir(collegium); "
        "assert 'PATEClassifier' in names; assert set(sys.modules) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
