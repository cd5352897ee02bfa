"""A cluster of several processes: slow tasks that are done twice, executors that are killed, what lies on its disks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import on_cluster
from servers import need, spark_cluster, why_no_spark


def test_slow_tasks_lost_executors_and_what_a_cluster_keeps(tmp_path) -> None:
    """With `spark.speculation` two tries of one task run at once: no row is counted or written twice."""
    need(why_no_spark())
    script = Path(on_cluster.__file__)
    paths = os.pathsep.join([str(Path(on_cluster.pm.__file__).parents[1]), str(script.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    with spark_cluster(tmp_path) as master:
        command = [sys.executable, "-W", "ignore", str(script), master, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"fit 1", "write 1"} <= set(found.pop("tries"))  # each was tried a second time, before the first had ended
    assert found == {"release": True, "rows": True, "loss": True, "keyless": [True, True, True]}
