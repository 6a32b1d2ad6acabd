package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/rdma"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), cli.Ends()...)
	code := runAs(ctx, os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runAs executes the command line of a program that was called by a name, and
// returns the exit status: as rdma it takes the place of iproute2's.
func runAs(ctx context.Context, argv0 string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	asRDMA := rdma.IsName(argv0)
	root := newRoot()
	if asRDMA {
		root = rdma.Root()
	}
	return cli.Run(ctx, root, rdma.Args(args, asRDMA), stdin, stdout, stderr)
}
