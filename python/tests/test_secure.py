"""Servers and clients with TLS, and their other options."""
import os
import re
import subprocess
import urllib.request

import gradwire as gw
import numpy as np
import pytest
from conftest import eventually

CUSTOM = {"problem": {"kind": "custom", "dim": 10}, "clients": {"count": 2},
          "algorithm": {"name": "ef21", "compressor": "topk:k=2", "step_size": 0.1}, "run": {"rounds": 20}}


def oracle(i):
    return gw.oracle(lambda x: (0.5 * x @ x - i * x.sum(), x - i), 10)


@pytest.fixture
def tokens(tmp_path):
    """Makes the identity of a server, and returns the files with the tokens of two clients."""
    done = subprocess.run([os.environ["GRADWIRE_BIN"] + "/gradwire-server", "init", "identity", "--clients", "2", "--host",
                           "127.0.0.1", "--out", "tokens"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [tmp_path / f"tokens/client-{i}.token" for i in range(2)]


def test_tls_has_the_bits_of_a_run(tmp_path, tokens):
    lines = []
    with gw.Server(CUSTOM, state=tmp_path / "state", identity=tmp_path / "identity", log=lines.append) as server:
        clients = [gw.Client(server.address, oracle=oracle(i), identity=tmp_path / f"me-{i}", token=f"@{token}", part=i, parts=2,
                             state=tmp_path / f"state-{i}", log=lines.append).start() for i, token in enumerate(tokens)]
        result = server.wait(60)
        [client.wait(60) for client in clients]
    alone = gw.run(CUSTOM, oracles=[oracle(0), oracle(1)])
    np.testing.assert_array_equal(result.model, alone.model)
    np.testing.assert_array_equal(result.metrics.loss, alone.metrics.loss)
    assert any("joined as client 1 of 2" in line for line in lines) and all("\n" not in line for line in lines)
    assert (tmp_path / "me-0").is_dir() and (tmp_path / "state-1").is_dir()


def test_a_client_without_a_token_is_refused(tmp_path, tokens):
    with gw.Server(CUSTOM, state=tmp_path / "state", identity=tmp_path / "identity") as server:
        with pytest.raises(gw.ExperimentError, match="this server requires authentication"):
            gw.Client(server.address, oracle=oracle(0), ca=tmp_path / "identity/ca.pem").start().wait(60)


def test_metrics_are_served(tmp_path):
    lines = []
    with gw.Server(CUSTOM, state=tmp_path / "state", metrics="127.0.0.1:0", log=lines.append):
        assert eventually(lambda: any("metrics for Prometheus" in line for line in lines)), lines
        address, = re.findall(r"metrics for Prometheus: http://(\S+)/metrics", "\n".join(lines))
        page = urllib.request.urlopen(f"http://{address}/metrics", timeout=60).read().decode()
    assert "gradwire_rounds" in page


@pytest.mark.parametrize("options, words", [
    ({"listen": "0.0.0.0:0"}, "--insecure"), ({"identity": "nowhere"}, "nowhere"), ({"metrics": "nonsense"}, "--metrics"),
])
def test_options_of_a_server_follow_the_rules_of_the_program(tmp_path, options, words):
    with pytest.raises((gw.ExperimentError, gw.RunError), match=words) as error:
        gw.Server(CUSTOM, state=tmp_path / "state", **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("options, words", [
    ({"server": "192.0.2.1:7000"}, "--insecure"),
    ({"token": "gw1.x"}, "--token"),
    ({"identity": "me", "insecure": True}, "--insecure"),
    ({"ca": "nowhere.pem"}, "nowhere.pem"),
])
def test_options_of_a_client_follow_the_rules_of_the_program(tmp_path, options, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"server": "127.0.0.1:1", "give_up_after": 0.2} | options
    with pytest.raises((gw.ExperimentError, gw.RunError), match=words) as error:
        gw.Client(options.pop("server"), oracle=oracle(0), **options).start().wait(60)
    assert "\n" not in str(error.value)


def test_plain_text_between_machines_needs_insecure(tmp_path):
    with gw.Server(CUSTOM, state=tmp_path / "state", listen="0.0.0.0:0", insecure=True) as server:
        address = "127.0.0.1:" + server.address.rpartition(":")[2]
        clients = [gw.Client(address, oracle=oracle(i), insecure=True).start() for i in range(2)]
        assert server.wait(60).outcome == "finished"
        [client.wait(60) for client in clients]
