"""What is made for the site: the gallery, the reference, formulas, notebooks. Read `hooks` last: it
puts them into MkDocs."""
