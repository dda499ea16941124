"""A reader of .pyro files in plain Python, written from docs/format.md alone: it proves the document.

Not for use: it is slow, and it believes what it reads once the checksums hold.
"""
import struct

import xxhash
import zstandard

FILE = struct.Struct("<8sHHIII16sQQQ")
CHUNK = struct.Struct("<IHHIIIIQ")
MAGIC, CHUNK_MAGIC = b"\x89PYRO\r\n\x1a", 0x48435950
MAX_CHUNK = 64 << 20
META, STRINGS, CODES, STACKS, PROCESSES, THREADS, SAMPLES, STATS, END, CALLS, ALLOCATIONS, SOURCES = 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 18, 23


class Damaged(Exception):
    pass


class Payload:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def svarint(self):
        n = self.varint()
        return n >> 1 if n % 2 == 0 else -(n >> 1) - 1

    def bytes(self):
        size = self.varint()
        if self.at + size > len(self.data):
            raise Damaged("a text longer than its chunk")
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        return self.bytes().decode("utf-8", "replace")

    def varints(self, count):
        return [self.varint() for _ in range(count)]


class Recording:
    """meta, strings, codes, stacks, processes, threads, samples, stats, sources; damaged, missing, torn, finished."""

    def __init__(self, data):
        self.meta, self.strings, self.codes, self.stacks = {}, {0: ""}, {}, {}
        self.processes, self.threads, self.samples, self.stats, self.sources = {}, {}, [], {}, {}
        self.calls = []  # (thread, stack, calls, resumes, self ns, alive ns, probes ns)
        self.memory = []  # checkpoints: dicts, with sizes [(allocator, bin, count, bytes)] and sites [dict]
        self.damaged = self.missing = 0
        self.torn = self.finished = False
        self.data = data
        self.read_header()
        self.read_chunks()

    def read_header(self):
        if self.data[:8] != MAGIC:
            raise Damaged("not a recording")
        (_, self.major, self.minor, size, _, incompatible, self.run_id, self.created_ns, self.clock_origin_ns,
         checksum) = FILE.unpack_from(self.data)
        if self.major > 1:
            raise Damaged("newer")
        if checksum != xxhash.xxh3_64_intdigest(self.data[:56]) or size != 64:
            raise Damaged("its header is wrong")
        if incompatible:
            raise Damaged("newer")

    def frame(self, at):
        """The fields of a sound chunk header, or None."""
        if at + CHUNK.size > len(self.data):
            return None
        fields = CHUNK.unpack_from(self.data, at)
        magic, stored, raw = fields[0], fields[4], fields[5]
        fits = at + CHUNK.size + stored <= len(self.data)
        return fields if magic == CHUNK_MAGIC and max(stored, raw) <= MAX_CHUNK and fits else None

    def is_whole(self, at):
        fields = self.frame(at)
        if not fields:
            return False
        payload = self.data[at + CHUNK.size:at + CHUNK.size + fields[4]]
        return fields[7] == xxhash.xxh3_64_intdigest(payload, xxhash.xxh3_64_intdigest(self.data[at:at + 24]))

    def read_chunks(self):
        at, expected = FILE.size, 0
        while at < len(self.data):
            if not self.is_whole(at):
                at = self.data.find(b"PYCH", at + 1)
                while at >= 0 and not self.is_whole(at):
                    at = self.data.find(b"PYCH", at + 1)
                if at < 0:
                    self.torn = True
                    return
                self.damaged += 1
            _, kind, flags, sequence, stored, raw, records, _ = self.frame(at)
            payload = self.data[at + CHUNK.size:at + CHUNK.size + stored]
            if flags & 1:
                payload = zstandard.ZstdDecompressor().decompress(payload, max_output_size=raw)
            if len(payload) != raw:
                raise Damaged("a payload of another size")
            self.missing += max(0, sequence - expected)
            expected = sequence + 1
            self.finished = kind == END
            self.decode(kind, Payload(payload), records)
            at += CHUNK.size + stored

    def decode(self, kind, p, records):
        decoders = {META: self.read_meta, STRINGS: self.read_strings, CODES: self.read_codes, STACKS: self.read_stacks,
                    PROCESSES: self.read_processes, THREADS: self.read_threads, SAMPLES: self.read_samples,
                    STATS: self.read_stats, CALLS: self.read_calls, ALLOCATIONS: self.read_allocations, SOURCES: self.read_sources}
        if kind in decoders:
            decoders[kind](p, records)
            if p.at != len(p.data):
                raise Damaged("bytes behind the last record of a chunk of kind %d" % kind)

    def read_meta(self, p, records):
        for _ in range(records):
            key = p.text()
            self.meta[key] = p.text()

    def read_strings(self, p, records):
        first = p.varint()
        for i in range(first, first + records):
            self.strings[i] = p.text()

    def read_codes(self, p, records):
        first = p.varint()
        for i in range(first, first + records):
            self.codes[i] = dict(zip(("name", "qualname", "file", "first_line", "flags"), p.varints(5)))

    def read_stacks(self, p, records):
        first = p.varint()
        for i in range(first, first + records):
            back, code, line = p.varints(3)
            self.stacks[i] = (i - back, code, line)

    def read_processes(self, p, records):
        names = ("id", "pid", "parent_pid", "kind", "command", "python_version", "start_ns", "end_ns")
        for _ in range(records):
            process = dict(zip(names, p.varints(8)))
            self.processes[process["id"]] = process

    def read_threads(self, p, records):
        names = ("id", "process", "tid", "name", "ident", "interpreter", "start_ns")
        for _ in range(records):
            thread = dict(zip(names, p.varints(7)))
            self.threads[thread["id"]] = thread

    def read_samples(self, p, records):
        thread = stack = end = 0
        for _ in range(records):
            head = p.byte()
            if not head & 0x40:
                thread = p.varint()
            stack += p.svarint()
            start = (end + p.svarint()) % 2**64
            duration = p.varint()
            count = p.varint() if head & 0x80 else 1
            end = (start + duration) % 2**64
            self.samples.append((thread, stack, head & 0x1F, count, start, duration))

    def read_calls(self, p, records):
        thread = stack = 0
        for _ in range(records):
            thread += p.svarint()
            stack += p.svarint()
            self.calls.append((thread, stack, *p.varints(5)))

    def read_allocations(self, p, records):
        names = ("process", "flags", "time_ns", "live_bytes", "live_count", "peak_bytes", "peak_ns")
        checkpoint = dict(zip(names, p.varints(7)))
        checkpoint["sizes"] = [tuple(p.varints(4)) for _ in range(p.varint())]
        checkpoint["sites"] = []
        thread = stack = 0
        for _ in range(records - len(checkpoint["sizes"])):
            head = p.varint()
            thread += p.svarint()
            stack += p.svarint()
            site = dict.fromkeys(("freed", "freed_bytes", "brief", "brief_bytes", "peak_count", "peak_bytes", "variance",
                                  "live_variance", "peak_variance"), 0)
            site.update(thread=thread, stack=stack, allocator=head & 0x1F, count=p.varint(), bytes=p.varint())
            for bit, pair in ((5, ("freed", "freed_bytes")), (6, ("brief", "brief_bytes")), (7, ("peak_count", "peak_bytes"))):
                if head >> bit & 1:
                    site.update(zip(pair, p.varints(2)))
            if head >> 8 & 1:
                site.update(zip(("variance", "live_variance", "peak_variance"), struct.unpack_from("<ddd", p.data, p.at)))
                p.at += 24
            checkpoint["sites"].append(site)
        self.memory.append(checkpoint)

    def read_stats(self, p, records):
        for _ in range(records):
            name = p.text()
            self.stats[name] = p.varint()

    def read_sources(self, p, records):
        for _ in range(records):
            path, flags, size, mtime_ns, digest = p.varints(5)
            self.sources[path] = (flags, size, mtime_ns, digest, p.bytes() if flags & 1 else None)

    def frames(self, stack):
        """[(function, file, first line)], leaf first."""
        while stack:
            stack, code, _ = self.stacks[stack]
            c = self.codes[code]
            yield self.strings[c["qualname"]] or self.strings[c["name"]], self.strings[c["file"]], c["first_line"]
