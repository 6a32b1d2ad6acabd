package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// counterPort is the port of the sample counter.
const counterPort = 7476

// deviceName is the device that the flags or the environment name, a soft one
// if they ask for faults only; "" if none.
func deviceName(f *cli.DeviceFlags) string {
	f.ChooseSeed()
	if name := f.Named(); name != "" || f.Options() == "" {
		return name
	}
	return cli.WithOptions("soft", f.Options())
}

// service is the server of the sample counter.
type service struct {
	device    cli.DeviceFlags
	listen    string
	withStdin bool
}

func (s *service) flags(cmd *cobra.Command) {
	s.device.Add(cmd)
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", strconv.Itoa(counterPort), "address to listen on, ADDR:PORT, or PORT on the device's address, else on 127.0.0.1; port 0 takes a free one")
	f.BoolVar(&s.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
}

// run serves a counter until the command's context ends.
func (s *service) run(cmd *cobra.Command, c *counter, config rpc.ServerConfig) error {
	device, address, err := cli.OpenToListen(s.listen, deviceName(&s.device), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer device.Close()
	l, err := device.Listen(address, uapi.ListenConfig{})
	if err != nil {
		return err
	}
	defer l.Close()
	server := rpc.NewServer(config)
	samplepb.RegisterCounterServer(server, c)
	c.below.sessions = server.Sessions()
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	if s.withStdin {
		go peer.EndWithStdin(cmd, cancel)
	}
	if err := peer.PrintListening(cmd.OutOrStdout(), l.Addr()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err = server.Serve(l)
	server.Stop()
	return err
}

// cutter breaks connections of a server.
type cutter struct {
	sessions *session.Server
	cuts     atomic.Uint64
}

// cut breaks a random connection.
func (c *cutter) cut() {
	if c.sessions.Cut() {
		c.cuts.Add(1)
	}
}

// dialCounter makes a connection to the server at an address. The caller calls
// done in the end.
func dialCounter(cmd *cobra.Command, f *cli.DeviceFlags, address string) (conn *rpc.ClientConn, done func() error, err error) {
	var device *uapi.Device
	if name := deviceName(f); name != "" && name != uapi.DefaultDevice { // else by the route
		if device, err = cli.Open(name, cmd.ErrOrStderr(), uapi.OpenConfig{}); err != nil {
			return nil, nil, err
		}
	}
	conn, err = rpc.Dial(cmd.Context(), address, rpc.ClientConfig{Device: device})
	if err != nil {
		if device != nil {
			_ = device.Close()
		}
		return nil, nil, err
	}
	return conn, func() error {
		err := conn.Close()
		if device != nil {
			err = errors.Join(err, device.Close())
		}
		return err
	}, nil
}

// reached is a call's error with a hint for a server that is not there.
func reached(err error) error {
	if status.Code(err) == codes.Unavailable {
		return fmt.Errorf("%w (is 'rdmashim sample counter server' running there?)", plainly(err))
	}
	return plainly(err)
}

// plainly is a status as a person reads it.
func plainly(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("%s: %s", s.Code(), cmp.Or(s.Message(), "no text"))
	}
	return err
}
