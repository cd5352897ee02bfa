"""The local page of `privmeasure app`: from a table to a release, for those who do not live in a terminal.

    door      who may come in: one token, one cookie, one host, no other origin
    server    HTTP on the loopback address: sizes, times, headers; uploads to a private folder
    commands  what the page asks of the command line: the protocol, and what goes over it
    desk      one visit: the table, its schema, the promise, confirmations, releases
    jobs      long work, one after the other, on the main thread
    forms     what was typed, as a schema with or without gaps
    terms     what was typed, as a promise; what is said of a plan
    frame     what all pages have in common
    declaring, releasing
              the pages before anything is spent, and those that spend and after
    views     which page an address has
    leftovers the folder of a visit, and what is left of a page that was killed
    visit     from the first address to the last file

**It opens no data.** This room cannot reach sources, counts, mechanisms or comparisons: what opens a table is given to
it by `cli/serving.py`, which calls the routines of the commands. So whatever the page does, `plan`, `fit`, `sample` and
`report` do, with the same checks, the same words and the same ledger.

**Why the standard library's server.** There is one visitor, on the loopback address, who reads a few forms: nothing in
that needs an event loop, a router or a parser for multipart forms. `http.server`, without its file serving, and Jinja2,
which reports need anyway, add no package that somebody would have to trust and to update; each request is one
connection, so that no state of a connection can go wrong. It does not scale, and is not meant to.
"""
