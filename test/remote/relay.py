#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""relay.py - a link between the tests and a cluster that is slow, or a server that says that it is another version.

    relay.py HOST:PORT SERVER:PORT [--delay SECONDS] [--replace OLD NEW]

It listens at the first address, prints "up", and passes all bytes on, in both directions; each piece arrives at least
so much later than it was sent. In what the server says, OLD becomes NEW, which has the same length.
"""
import argparse
import asyncio


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


async def carry(reader, writer, delay, change):
    """Delays do not add up: each piece has its own moment at which it is written."""
    loop = asyncio.get_running_loop()
    pieces = asyncio.Queue()

    async def write():
        while piece := await pieces.get():
            due, data = piece
            await asyncio.sleep(due - loop.time())
            writer.write(data)
            await writer.drain()
        writer.close()

    writing = asyncio.create_task(write())
    try:
        while data := await reader.read(65536):
            pieces.put_nowait((loop.time() + delay, change(data)))
    except OSError:
        pass
    pieces.put_nowait(None)
    try:
        await writing
    except OSError:
        pass


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("here")
    parser.add_argument("server")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--replace", nargs=2, default=("", ""))
    options = parser.parse_args()
    old, new = (text.encode() for text in options.replace)
    assert len(old) == len(new)

    async def serve(client_reader, client_writer):
        try:
            server_reader, server_writer = await asyncio.open_connection(*split(options.server))
        except OSError:
            client_writer.close()
            return
        await asyncio.gather(
            carry(client_reader, server_writer, options.delay, lambda data: data),
            carry(server_reader, client_writer, options.delay, lambda data: data.replace(old, new) if old else data))

    server = await asyncio.start_server(serve, *split(options.here))
    print("up", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
