package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// others are the other processes of references that are built in, and one that
// keeps a processor busy. They say where they listen, and end with ctx.
var others = map[string]func(ctx context.Context, args []string, announce func(netip.AddrPort) error) error{
	"udp": func(ctx context.Context, args []string, announce func(netip.AddrPort) error) error {
		size, _ := strconv.Atoi(args[0]) // 0 is refused
		return udpSink(ctx, size, announce)
	},
	"streams": func(ctx context.Context, args []string, announce func(netip.AddrPort) error) error {
		return serveStreams(ctx, args[0], args[1], announce)
	},
	"nvme": func(ctx context.Context, args []string, announce func(netip.AddrPort) error) error {
		return serveDisk(ctx, args[0], announce)
	},
	"pong": func(ctx context.Context, args []string, announce func(netip.AddrPort) error) error {
		at, err := netip.ParseAddrPort(args[0])
		if err != nil {
			return err
		}
		return udpPong(ctx, args[1] == "true", at, announce)
	},
	"burn": func(ctx context.Context, _ []string, announce func(netip.AddrPort) error) error {
		err := announce(netip.AddrPort{})
		for ctx.Err() == nil && err == nil {
		}
		return err
	},
}

// OtherCommand is such a process. It ends when its standard input closes, too.
func OtherCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "other KIND [ARG …]",
		Short: "The other process of a reference of the suite",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := others[args[0]]
			if run == nil {
				return cli.Usagef("other: no %q", args[0])
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				cancel()
			}()
			// The arguments that are left out are empty.
			err := run(ctx, append(args[1:], "", ""), func(at netip.AddrPort) error {
				return peer.PrintListening(cmd.OutOrStdout(), at)
			})
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
	}
}

// other starts such a process.
func other(args ...any) partner {
	words := []string{"other"}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	return func(ctx context.Context) (netip.AddrPort, func(), error) {
		var said bytes.Buffer
		c, err := cli.StartProcess(ctx, &said, words)
		if errors.Is(err, cli.ErrNotListening) {
			err = cli.LastLineError(&said, io.Discard)
		}
		if err != nil {
			return netip.AddrPort{}, nil, err
		}
		at, _ := netip.ParseAddrPort(c.Addr) // none of a process that burns
		return at, c.Stop, nil
	}
}
