package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/lab/suite"
	"github.com/rdmashim/rdmashim/tools/rdmashim/kernel"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	cprogram "github.com/rdmashim/rdmashim/tools/rdmashim/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.NewRoot("tools/bench", commands()...), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands are the suite, which is shown, and those of the processes that it
// starts.
func commands() []*cobra.Command {
	started := []*cobra.Command{suite.OtherCommand(), perf.Command(), cprogram.Command(), kernel.Command()}
	for _, c := range started {
		c.Hidden = true
	}
	return append(started, suite.Command())
}
