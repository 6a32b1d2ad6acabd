package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runAs(ctx, os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes the command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runAs(ctx, "rdmashim", args, stdin, stdout, stderr)
}

// runAs is run under a name: as rdma, the program takes iproute2's place.
func runAs(ctx context.Context, argv0 string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	asRDMA := calledAsRDMA(argv0)
	root := newRoot()
	if asRDMA {
		root = newRDMARoot()
	}
	root.SetArgs(rdmaArgs(args, asRDMA))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var ended *exitStatus
	if errors.As(err, &ended) {
		if ended.err != nil {
			fmt.Fprintf(stderr, "rdmashim: %s\n", oneLine(ended.err))
		}
		return ended.code
	}
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "%s: %s (try '%s --help')\n", root.Name(), oneLine(err), cmd.CommandPath())
		return 2
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), oneLine(err))
	return 1
}

// oneLine keeps an error on the one line that scripts expect.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
