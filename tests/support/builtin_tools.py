"""The names of the built-in tools, by risk."""

READS = "ai.count ai.find ai.list ai.read ai.search embedding.query".split()
WRITES = "ai.append ai.copy ai.delete ai.edit ai.make_folder ai.move ai.undo ai.write".split()
EXECUTES = ["ai.execute"]
ALL = sorted([*READS, *WRITES, *EXECUTES])
RISKS = {
    **dict.fromkeys(READS, "read"),
    **dict.fromkeys(WRITES, "write"),
    **dict.fromkeys(EXECUTES, "execute"),
}
