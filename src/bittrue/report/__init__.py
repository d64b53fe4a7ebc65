"""Results as plain data (the JSON of `bittrue compare` and `bittrue check`) made into pages.

`bittrue.report.html.render` gives one offline HTML file, `bittrue.report.markdown.render` a short summary for CI. Both
take the dict of a result, fresh or read back with `bittrue.report.reading.load`, and know nothing else.
"""
