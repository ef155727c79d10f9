"""Where rows come from: files of several formats, split so that executors share them."""
