package main

import (
	"bytes"
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

// newPerfOther is the other process of the references that are built in, one
// subcommand each. It ends when its standard input closes.
func newPerfOther() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "other",
		Short:  "The other process of a reference of 'rdmashim perf suite'",
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return usagef("perf other: udp, tcp or pong") },
	}
	size := 0
	for name, run := range map[string]func(context.Context, int, func(netip.AddrPort) error) error{
		"udp": perf.UDPSink, "tcp": perf.TCPSink,
	} {
		cmd.AddCommand(newPerfAnswer(name, func(ctx context.Context, announce func(netip.AddrPort) error) error {
			return run(ctx, size, announce)
		}))
	}
	var peer string
	var spin bool
	pong := newPerfAnswer("pong", func(ctx context.Context, announce func(netip.AddrPort) error) error {
		to, err := netip.ParseAddrPort(peer)
		if err != nil {
			return usagef("--peer: %v", err)
		}
		return perf.UDPPong(ctx, size, spin, to, announce)
	})
	pong.Flags().StringVar(&peer, "peer", "", "ADDR:PORT of the side that asks")
	pong.Flags().BoolVar(&spin, "spin", false, "spin instead of waiting")
	cmd.AddCommand(pong)
	cmd.PersistentFlags().IntVar(&size, "size", pongSize, "bytes of a message")
	return cmd
}

// newPerfAnswer is such a subcommand. run says where it listens.
func newPerfAnswer(name string, run func(ctx context.Context, announce func(netip.AddrPort) error) error) *cobra.Command {
	return &cobra.Command{
		Use:  name,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				cancel()
			}()
			return run(ctx, func(at netip.AddrPort) error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n", listeningPrefix, at)
				return err
			})
		},
	}
}

// other starts that process with the words given.
func (s *suite) other(words ...string) perf.Peer {
	return func(ctx context.Context) (netip.AddrPort, func(), error) {
		var said bytes.Buffer
		c, err := startProcess(ctx, &said, append([]string{"perf", "other"}, words...))
		if errors.Is(err, errServerSaid) {
			err = saidError(&said, io.Discard)
		}
		if err != nil {
			return netip.AddrPort{}, nil, err
		}
		at, err := netip.ParseAddrPort(c.Addr)
		if err != nil {
			c.Stop()
			return netip.AddrPort{}, nil, err
		}
		return at, c.Stop, nil
	}
}

// pong starts the process that answers the ping-pong's socket.
func (s *suite) pong(size int, spin bool) func(context.Context, netip.AddrPort) (netip.AddrPort, func(), error) {
	return func(ctx context.Context, from netip.AddrPort) (netip.AddrPort, func(), error) {
		return s.other("pong", "--peer", from.String(), "--size", strconv.Itoa(size), "--spin="+strconv.FormatBool(spin))(ctx)
	}
}
