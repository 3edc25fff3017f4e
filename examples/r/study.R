# Collegium from R, through reticulate: Rscript study.R [STUDY TABLE]
# COLLEGIUM_PYTHON names the Python in which Collegium is installed.
library(reticulate)
use_python(Sys.getenv("COLLEGIUM_PYTHON", Sys.which("python3")), required = TRUE)
cg <- import("collegium", convert = FALSE)
in_r <- function(array) unlist(py_to_r(array$tolist())) # older reticulate knows no arrays of NumPy 2

# A model of an R data frame, within everybody's own budget. All people are invented.
set.seed(2026)
invented <- function(n) data.frame(age = round(rnorm(n, 62, 16)), days = round(rgamma(n, 2, 0.4)))
patients <- invented(2000)
public <- invented(300)
back <- ifelse(patients$age / 12 + patients$days / 4 + rlogis(2000) > 6.9, "yes", "no")
level <- sample(c("strict", "usual", "generous"), 2000, replace = TRUE, prob = c(0.3, 0.5, 0.2))

policy <- cg$Policy(dict(strict = 0.5, usual = 1.0, generous = 3.0), delta = 1e-5)
model <- cg$DPSGDClassifier(classes = c("no", "yes"))
invisible(model$fit(patients, back, budgets = policy$assign(level), X_public = public))
print(model$privacy_$by_group())
print(table(in_r(model$predict(public))))

# The released student of a study, asked about a table of others.
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) == 2) {
  student <- cg$load_student(arguments[1])
  records <- cg$read_records(arguments[2], arguments[1])
  print(table(in_r(student$predict(records))))
}
