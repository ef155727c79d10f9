"""Have `fork_server.py` run a command, and end as that does.

Run as `python -IS fork_client.py SOCKET PROGRAM ARGUMENTS`. It imports as little as it can.
"""

import json
import os
import signal
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    request = {
        "arguments": sys.argv[2:],
        "folder": os.getcwd(),  # noqa: PTH109 (pathlib takes longer to load than all of this)
        "environment": dict(os.environ),
    }
    data = json.dumps(request).encode() + b"\n"
    server.sendall(data[socket.send_fds(server, [data], [0, 1, 2]) :])
    said = server.recv(16)
code = int(said) if said else 1
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.stdout = sys.stderr = None  # They were the command's.
sys.exit(code)
