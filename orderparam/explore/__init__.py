"""The explorer: a page in the browser, made from the registry, on which one turns the knobs of any theory.

    orderparam explore

In the order of reading:

    starts.py      where a system begins: at a curve of a study that has it, or at numbers that its contract allows
    written.py     a system as Python, and as the words of the command line
    state.py       what is seen, as the page's address, as Python and as commands; nothing else is kept of a page
    knobs.py       the numbers and choices of a system, from the contract: range, scale, steps
    evaluate.py    theories over a grid, in a worker thread, the latest request alone
    measure.py     experiments in background processes, into a store
    phases.py      the plane of two numbers, ever finer
    folder.py      what the browser may name and upload
    curves.py      the figure of the curves
    plane.py       the figure of the plane
    take_away.py   what is drawn, as files
    slider.py      one number
    controls.py    sliders and menus of one system
    gallery.py     the studies
    your_data.py   the forecast of a person's own rows
    style.py       how the page looks
    app.py         the page
    server.py      who may open it

This package needs the extra `explore` (Panel and Bokeh); nothing else imports it but the command.
"""
