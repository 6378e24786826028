from orderparam.cli import main

main()
