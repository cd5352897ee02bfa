"""What a model learns from a synthetic table: trained there, tested on real rows that no release has seen.

One column is predicted from all others: a category of two values (area under the ROC curve, AUC) or a number (R2).
Tables are matrices as in measure.py. Rows whose target is missing are left out.

    boosting   scikit-learn's HistGradientBoosting with its defaults; categories are declared where it takes that many
    linear     logistic or ridge regression on standardised numbers (a missing one at the mean, and a column that says
               so) and a column for each category
"""

import warnings

import numpy as np

from rivals.measure import Bounds, count

MOST_CATEGORIES = 255
"""What HistGradientBoosting takes; the codes of longer columns are numbers to it."""
METHODS = ("boosting", "linear")


def scores(train: np.ndarray, test: np.ndarray, bounds: Bounds, target: str) -> dict[str, float]:
    """Return the score of each model; a table that has one of the two classes only teaches nothing, and has AUC 1/2."""
    place = [*bounds].index(target)
    is_class = bounds[target][0] == "category"
    train, test = (x[known(x[:, place], bounds[target])] for x in (train, test))
    if len(train) < 2 or (is_class and len(np.unique(train[:, place])) < 2):
        return dict.fromkeys(METHODS, 0.5 if is_class else 0.0)
    others = {name: bound for name, bound in bounds.items() if name != target}
    x, y = (np.delete(rows, place, axis=1) for rows in (train, test))
    return {
        "boosting": boosted(x, train[:, place], y, test[:, place], others, is_class=is_class),
        "linear": linear(x, train[:, place], y, test[:, place], others, is_class=is_class),
    }


def known(values: np.ndarray, bound: tuple) -> np.ndarray:
    return values < len(bound[1]) if bound[0] == "category" else ~np.isnan(values)


def score(truth: np.ndarray, said: np.ndarray, *, is_class: bool) -> float:
    from sklearn.metrics import r2_score, roc_auc_score

    return float(roc_auc_score(truth, said) if is_class else r2_score(truth, said))


def boosted(
    x: np.ndarray, seen: np.ndarray, y: np.ndarray, truth: np.ndarray, bounds: Bounds, *, is_class: bool
) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    categories = [bound[0] == "category" and count(bound) <= MOST_CATEGORIES for bound in bounds.values()]
    kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    model = kind(categorical_features=categories, random_state=0).fit(x, seen)
    return score(truth, model.predict_proba(y)[:, 1] if is_class else model.predict(y), is_class=is_class)


def linear(
    x: np.ndarray, seen: np.ndarray, y: np.ndarray, truth: np.ndarray, bounds: Bounds, *, is_class: bool
) -> float:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge

    columns = [features(x[:, j], y[:, j], bound) for j, bound in enumerate(bounds.values())]
    trained, tested = (np.concatenate(parts, axis=1) for parts in zip(*columns, strict=True))
    mean, deviation = trained.mean(axis=0), trained.std(axis=0)
    deviation[deviation == 0] = 1
    trained, tested = ((part - mean) / deviation for part in (trained, tested))
    model = LogisticRegression(max_iter=300) if is_class else Ridge()
    with warnings.catch_warnings():  # where classes can be told apart the weights grow, and AUC is what it is
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(trained, seen)
    return score(truth, model.predict_proba(tested)[:, 1] if is_class else model.predict(tested), is_class=is_class)


def features(x: np.ndarray, y: np.ndarray, bound: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that a linear model gets of one column, for training and for testing."""
    if bound[0] == "category":
        codes = np.arange(count(bound))
        return (x[:, None] == codes).astype(float), (y[:, None] == codes).astype(float)
    missing = np.isnan(x)
    mean = 0.0 if missing.all() else float(np.nanmean(x))
    return tuple(np.column_stack((np.where(np.isnan(z), mean, z), np.isnan(z))) for z in (x, y))
