package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// pongSize is the length of the raw UDP ping-pong's messages in bytes.
const pongSize = 64

// newPerfPong is the other process of the raw UDP ping-pong. It ends when its
// standard input closes.
func newPerfPong() *cobra.Command {
	var peer string
	var spin bool
	cmd := &cobra.Command{
		Use:    "pong",
		Short:  "Answer the raw UDP ping-pong of 'rdmashim perf suite'",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			to, err := netip.ParseAddrPort(peer)
			if err != nil {
				return usagef("--peer: %v", err)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				cancel()
			}()
			return perf.UDPPong(ctx, pongSize, spin, to, func(at netip.AddrPort) error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n", listeningPrefix, at)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&peer, "peer", "", "ADDR:PORT of the side that asks")
	cmd.Flags().BoolVar(&spin, "spin", false, "spin instead of waiting")
	return cmd
}

// pong starts that process.
func (s *suite) pong(spin bool) func(context.Context, netip.AddrPort) (netip.AddrPort, func(), error) {
	return func(ctx context.Context, from netip.AddrPort) (netip.AddrPort, func(), error) {
		c, err := startProcess(ctx, s.stderr, []string{"perf", "pong", "--peer", from.String(), "--spin=" + strconv.FormatBool(spin)})
		if errors.Is(err, errServerSaid) {
			return netip.AddrPort{}, nil, &exitStatus{code: 1}
		}
		if err != nil {
			return netip.AddrPort{}, nil, err
		}
		at, err := netip.ParseAddrPort(c.addr)
		if err != nil {
			c.stop()
			return netip.AddrPort{}, nil, err
		}
		return at, c.stop, nil
	}
}
