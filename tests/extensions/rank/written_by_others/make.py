"""Make the files beside this one, by the packages whose formats they are in.

``python make.py FOLDER`` in an environment with lm-eval 0.4.13, benchopt 1.10.0 and
tabarena 0.1.1.dev20261026201653, none of which fairbench needs: what is here was made by these
versions, and makers may be named after FOLDER. The AutoML benchmark is no package: its columns are
those of its documentation. Models, questions and values are made up.
"""

import json
import os
import sys
from pathlib import Path
from unittest.mock import MagicMock

ANSWERS = ("4", "9", "16", "25")
RIGHT = {"one": {0, 1, 3}, "two": {0}}  # which questions a model answers rightly


def lm_eval(folder):
    """Evaluate two models on a group of two multiple-choice tasks and one of generated text."""
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    @register_model("parrot")
    class Parrot(LM):
        """Knows the answers of one of the models above."""

        def __init__(self, right):
            super().__init__()
            self.right = right

        @classmethod
        def create_from_arg_obj(cls, arg_dict, additional_config=None):
            return cls(RIGHT[arg_dict["model"].rpartition("/")[2]])

        @classmethod
        def create_from_arg_string(cls, arg_string, additional_config=None):
            words = dict(word.split("=") for word in arg_string.split(","))
            return cls.create_from_arg_obj(words)

        def _knows(self, question):
            return int(question.split()[-1].rstrip("?")) - 2 in self.right

        def loglikelihood(self, requests):
            scored = []
            for request in requests:
                question, choice = request.args
                base = int(question.split("of ")[1].split("?")[0])
                is_right = choice.strip() == str(base**2)
                scored.append((-1.0 if is_right == (base - 2 in self.right) else -2.0, False))
            return scored

        def loglikelihood_rolling(self, requests):
            return [(-3.0,) for _ in requests]

        def generate_until(self, requests):
            texts = []
            for request in requests:
                base = int(request.args[0].split("of ")[1].split("?")[0])
                known = base - 2 in self.right
                texts.append(f"The answer is {base**2}." if known else "no idea 7")
            return texts

    tasks = Path("lm_eval_tasks")  # what is written names files by their path
    tasks.mkdir()
    data = tasks / "data.jsonl"
    data.write_text("".join(
        json.dumps({"question": f"What is the square of {k + 2}?", "answer": answer,
                    "choices": [answer, str(int(answer) + 1)]}) + "\n"
        for k, answer in enumerate(ANSWERS)
    ))  # fmt: skip
    common = {
        "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test", "doc_to_text": "{{question}}", "metadata": {"version": 1.0},
    }  # fmt: skip

    def metrics(*names):
        return [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names]

    def extracted(name, pattern):
        steps = [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}]
        return {"name": name, "filter": steps}

    choice = {
        "output_type": "multiple_choice", "doc_to_choice": "{{choices}}", "doc_to_target": 0,
        "metric_list": metrics("acc", "acc_norm"),
    }  # fmt: skip
    said = {
        "task": "said_squares", "output_type": "generate_until", "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n"]}, "metric_list": metrics("exact_match"),
        "filter_list": [
            extracted("strict-match", r"answer is (\d+)"), extracted("flexible-extract", r"(\d+)"),
        ],
    }  # fmt: skip
    group = {
        "group": "choices", "task": ["choice_squares", "choice_again"],
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
        "metadata": {"version": 1.0},
    }  # fmt: skip
    for name, about in {
        "choice_squares": {"task": "choice_squares", **common, **choice},
        "choice_again": {"task": "choice_again", **common, **choice},
        "said": {**common, **said},
        "choices": group,
    }.items():
        (tasks / f"{name}.yaml").write_text(json.dumps(about))  # which YAML reads
    for name in RIGHT:
        tracker = EvaluationTracker(output_path=str(folder / "lm_eval"))
        results = simple_evaluate(
            model="parrot", model_args=f"model=birds/{name}", tasks=["choices", "said_squares"],
            task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
            evaluation_tracker=tracker, bootstrap_iters=0, log_samples=True,
        )  # fmt: skip
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in results["configs"]:
            tracker.save_results_samples(task_name=task, samples=samples[task])
    for path in tasks.iterdir():
        path.unlink()
    tasks.rmdir()


def tabarena(folder):
    """Write what TabArena's results of two methods on two data sets and folds are as tables."""
    sys.modules["ray"] = MagicMock()  # a large package that only simulations use
    import pandas as pd
    from tabarena.benchmark.result.baseline_result import BaselineResult

    rows = []
    for name, offset in (("LightGBM (default)", 0.0), ("CatBoost (tuned)", -0.01)):
        for dataset, metric, error in (("credit-g", "roc_auc", 0.21), ("diamonds", "rmse", 530.0)):
            for fold in range(2):
                result = {
                    "framework": name, "metric_error": error * (1 + offset + fold / 50),
                    "metric": metric, "time_train_s": 2.5 + fold, "time_infer_s": 0.1,
                    "problem_type": "binary" if metric == "roc_auc" else "regression",
                    "metric_error_val": error * 0.9,
                    "task_metadata": {"tid": 168, "name": dataset, "fold": fold, "repeat": 0,
                                      "sample": 0, "split_idx": fold},
                }  # fmt: skip
                rows.append(BaselineResult(result).compute_df_result())
    frame = pd.concat(rows, ignore_index=True)
    frame.to_parquet(folder / "tabarena.parquet")
    frame.to_csv(folder / "tabarena.csv", index=False)


def benchopt(folder):
    """Run two solvers on two data sets, in two repetitions."""
    import pandas as pd
    from benchopt.results import save_results
    from benchopt.runner import run_benchmark
    from benchopt.utils.temp_benchmark import temp_benchmark

    objective = """from benchopt import BaseObjective

class Objective(BaseObjective):
    name = "quadratic"
    sampling_strategy = "iteration"
    def set_data(self, X): self.X = X
    def get_one_result(self): return dict(beta=0.0)
    def evaluate_result(self, beta):
        return dict(value=self.X * beta**2 + 1, sparsity=float(beta == 0), path=[beta])
    def get_objective(self): return dict(X=self.X)
"""
    dataset = """from benchopt import BaseDataset

class Dataset(BaseDataset):
    name = "{name}"
    def get_data(self): return dict(X={scale})
"""
    solver = """from benchopt import BaseSolver

class Solver(BaseSolver):
    name = "{name}"
    def set_objective(self, X): self.X = X
    def run(self, n_iter): self.beta = {rate} ** n_iter
    def get_result(self): return dict(beta=self.beta)
"""
    datasets = {f"{name}.py": dataset.format(name=name, scale=scale)
                for name, scale in (("flat", 1.0), ("steep", 4.0))}  # fmt: skip
    solvers = {f"{name}.py": solver.format(name=name, rate=rate)
               for name, rate in (("slow", 0.5), ("fast", 0.1))}  # fmt: skip
    with temp_benchmark(objective, datasets, solvers, no_default=True) as benchmark:
        written = run_benchmark(
            str(benchmark.benchmark_dir), output_file="results", n_repetitions=2, max_runs=3,
            plot_result=False,
        )  # fmt: skip
        frame = pd.read_parquet(written)
    about_machine = [name for name in frame if name.startswith(("system", "platform", "env-"))]
    save_results(frame.drop(columns=about_machine), folder / "benchopt.parquet", uniquify=False)


def amlb(folder):
    """Write a table of results as the AutoML benchmark's documentation shows it."""
    head = (
        "id,task,framework,constraint,fold,result,metric,mode,version,params,tag,utc,duration,"
        "models,seed,info,acc,auc,balacc,logloss"
    )
    tasks = (("openml.org/t/3913", "kc2", "auc", 0.865801), ("openml.org/t/59", "iris",
             "neg_logloss", -0.126485))  # fmt: skip
    rows = []
    for place, task, metric, result in tasks:
        for framework, bonus in (("RandomForest", 0.0), ("flaml", 0.01)):
            for fold in range(2):
                failed = framework == "flaml" and fold == 0
                rows.append(
                    f"{place},{task},{framework},test,{fold},{'' if failed else result + bonus},"
                    f"{metric},local,0.23.2,{{'n': 2000}},,2020-12-04T19:27:46,3.{fold},2000,"
                    f"263384568{fold},{'ValueError: no' if failed else ''},0.79,0.86,0.66,0.5"
                )
    (folder / "amlb.csv").write_text("\n".join([head, *rows]) + "\n")


def main():
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for make in (lm_eval, tabarena, benchopt, amlb):
        if make.__name__ in sys.argv[2:] or not sys.argv[2:]:
            make(folder)


if __name__ == "__main__":
    main()
