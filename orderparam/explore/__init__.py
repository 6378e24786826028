"""The explorer: a page in the browser, generated from the registry, on which a person changes the
numbers of any theory and sees the curves move.

    orderparam explore

In the order of reading:

    systems.py     the systems of the registry, their theories and experiments
    starts.py      the table `starts.toml`: the figure on which each system opens, and the questions
                   that group them
    opening.py     where a system begins: as the table says, at a curve of a study, at numbers that
                   its contract allows
    written.py     a system as Python, and as the words of the command line
    state.py       what is seen, as the page's address, as Python and as commands; nothing else is
                   kept of a page
    knobs.py       the numbers and choices of a system, from the contract: range, scale, steps
    evaluate.py    theories over a grid, in a worker thread, the latest request alone
    measure.py     experiments in background processes, into a store
    phases.py      the plane of two numbers, ever finer
    folder.py      what the browser may name and upload
    curves.py      the figure of the curves
    plane.py       the figure of the plane
    figures.py     the figures of the table as they come with the package, and small pictures of
                   them
    formulas.py    text with formulas as HTML
    take_away.py   what is drawn, as Python, as commands and as files
    slider.py      one number
    upload.py      a file from the browser
    controls.py    sliders and menus of one system
    cards.py       pictures to choose from
    choose.py      what stands on them: systems and studies
    gallery.py     the studies
    your_data.py   the forecast of a person's own rows
    figure_tab.py  the figure of one system with its controls
    style.py       how the page looks
    app.py         the page: its tabs, and how it opens and shows a state
    origins.py     other names that it answers to, as they are given
    gate.py        which requests reach it
    server.py      who may open it

This package needs the extra `explore` (Panel and Bokeh); nothing else imports it but the command.
"""
