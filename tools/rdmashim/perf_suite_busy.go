package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// burners is how many processors a busy machine's other programs take.
const burners = 2

// newPerfBurn is such a program. It ends when its standard input closes.
func newPerfBurn() *cobra.Command {
	return &cobra.Command{
		Use:    "burn",
		Short:  "Keep a processor busy until standard input closes",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				close(ended)
			}()
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "burning"); err != nil {
				return err
			}
			for {
				select {
				case <-ended:
					return nil
				case <-cmd.Context().Done():
					return nil
				default:
				}
			}
		},
	}
}

// busy is a series measured while burners run.
func busy(x *series) *series {
	return &series{name: x.name + ", busy machine", absent: x.absent, measure: func(ctx context.Context) (float64, error) {
		for range burners {
			stop, err := burn()
			if err != nil {
				return 0, err
			}
			defer stop()
		}
		return x.measure(ctx)
	}}
}

// burn starts a burner; stop ends it.
func burn() (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "perf", "burn")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		stop()
		return nil, fmt.Errorf("a process that keeps the machine busy did not start: %w", err)
	}
	return stop, nil
}
