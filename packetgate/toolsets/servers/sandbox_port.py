"""Open a port in the sandbox, pass it to Packetgate, and become the server: a script for Linux.

Run as `python -I -S sandbox_port.py CHANNEL PORT PROGRAM ARGUMENT...`. Packetgate accepts the connections outside, and
the server has no other network access. So no process runs between them, and the port closes when both have exited.
"""

import os
import signal
import socket
import sys


def main() -> None:
    """Pass the listening socket through the channel, a file descriptor, and run the program."""
    channel, port, *command = sys.argv[1:]
    with (
        socket.socket(fileno=int(channel)) as parent,
        socket.create_server(("127.0.0.1", int(port)), backlog=128) as listener,
    ):
        socket.send_fds(parent, [b"."], [listener.fileno()])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and the server would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
