# SPDX-License-Identifier: MIT
"""Threads of Python with all that the module threading has. Prints "well" if every result is right."""
import concurrent.futures
import os
import queue
import signal
import threading

THREADS, ITEMS = 6, 500


def on_threads(function, count=THREADS):
    threads = [threading.Thread(target=function, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def queues():
    items, results = queue.Queue(maxsize=4), queue.Queue()

    def work(number):
        for i in range(ITEMS):
            items.put(number * ITEMS + i)
            results.put(items.get())

    on_threads(work)
    found = sorted(results.get_nowait() for _ in range(THREADS * ITEMS))
    assert found == list(range(THREADS * ITEMS))


def locks():
    lock, recursive, counts = threading.Lock(), threading.RLock(), [0, 0]

    def work(number):
        for _ in range(ITEMS):
            with lock:
                counts[0] += 1
            with recursive, recursive:
                counts[1] += 1

    on_threads(work)
    assert counts == [THREADS * ITEMS] * 2
    assert lock.acquire() and not lock.acquire(timeout=0.01) and not lock.acquire(blocking=False)


def conditions():
    turn, state = threading.Condition(), [0]

    def work(number):
        for _ in range(ITEMS // 10):
            with turn:
                assert turn.wait_for(lambda: state[0] % THREADS == number, timeout=60)
                state[0] += 1
                turn.notify_all()

    on_threads(work)
    assert state[0] == THREADS * (ITEMS // 10)
    with turn:
        assert not turn.wait(timeout=0.01)


def semaphores():
    permits, inside, most = threading.BoundedSemaphore(2), [0], [0]
    lock = threading.Lock()

    def work(number):
        for _ in range(ITEMS // 10):
            with permits:
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                with lock:
                    inside[0] -= 1

    on_threads(work)
    assert inside[0] == 0 and most[0] <= 2


def barriers():
    barrier, serial = threading.Barrier(THREADS), []

    def work(number):
        for _ in range(ITEMS // 10):
            if barrier.wait() == 0:
                serial.append(1)

    on_threads(work)
    assert len(serial) == ITEMS // 10


def events_and_pools():
    event = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        waiting = [pool.submit(event.wait, 60) for _ in range(THREADS - 1)]
        pool.submit(event.set).result()
        assert all(future.result() for future in waiting)
        assert sum(pool.map(lambda i: i * i, range(ITEMS))) == sum(i * i for i in range(ITEMS))


def forks():
    lock = threading.Lock()

    def work(number):
        for _ in range(5):
            child = os.fork()
            if child == 0:
                with lock:
                    os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    on_threads(work, 2)


class Interrupted(Exception):
    pass


def interrupt(number, frame):
    raise Interrupted


def interrupts():
    """A signal that comes while the main thread waits for a lock is handled at once."""
    signal.signal(signal.SIGALRM, interrupt)
    lock = threading.Lock()
    lock.acquire()
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        lock.acquire()
        assert False
    except Interrupted:
        signal.setitimer(signal.ITIMER_REAL, 0)


for test in queues, locks, conditions, semaphores, barriers, events_and_pools, forks, interrupts:
    test()
print("well")
