package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

type clientOptions struct {
	deviceFlags
	asJSON bool
	limit  int64 // bytes of the file to send; 0: all
}

func newClient() *cobra.Command {
	var o clientOptions
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT] [FILE]",
		Short: "Write a file into a server's memory by RDMA and read it back",
		Long: `Write FILE (default: this program's own) into the memory of 'rdmashim server' on
HOST by RDMA WRITE, send a message with an immediate, do an atomic, read
everything back by RDMA READ and compare.

Without --device the soft device on the route's source address is used.`,
		Example: `  rdmashim client 192.0.2.7 FILE
  rdmashim client 127.0.0.1:7471 FILE --loss 1% --seed 7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("client needs the server's HOST; start one with 'rdmashim server'")
			}
			return maxArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 2 {
				path = args[1]
			}
			r, err := runClient(cmd.Context(), withDefaultPort(args[0]), path, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return r.print(cmd.OutOrStdout(), o.asJSON)
		},
	}
	o.Add(cmd)
	cmd.Flags().BoolVarP(&o.asJSON, "json", "j", false, "print JSON")
	return cmd
}

// withDefaultPort completes HOST to HOST:PORT; IPv6 addresses may come bare.
func withDefaultPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
}

// serverThere is the command that serves clients at addr, HOST:PORT. Without
// --listen it serves those of its own machine only.
func serverThere(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
		return "rdmashim server"
	}
	return "rdmashim server --listen :" + port
}

// runClient does the job against the server at addr.
func runClient(ctx context.Context, addr, path string, o clientOptions, stderr io.Writer) (*report, error) {
	o.ChooseSeed()
	file, bytes, err := openSource(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if o.limit > 0 {
		bytes = min(bytes, o.limit)
	}
	s := &clientSession{file: file, bytes: bytes, stderr: stderr}
	// A device that was asked for and cannot be had is no matter of the server's.
	if name := o.Named(); name != "" {
		if s.rdma, err = open(name, stderr, uapi.OpenConfig{}); err != nil {
			return nil, err
		}
		defer s.rdma.Close()
	}
	dialer := net.Dialer{Timeout: peerSilence}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("reach the server: %w (is '%s' running there?)", err, serverThere(addr))
	}
	defer conn.Close()
	s.ctl = newControl(conn)
	s.report.Seed = o.Seed
	if s.rdma == nil {
		if s.rdma, err = openRoute(conn.LocalAddr(), o.Options(), stderr, uapi.OpenConfig{}); err != nil {
			return nil, err
		}
		defer s.rdma.Close()
	}
	if err := errors.Join(s.run(ctx), s.close()); err != nil {
		return nil, err
	}
	return &s.report, s.report.check()
}

// openSource opens the file to send; an empty path is this program's own.
func openSource(path string) (*os.File, int64, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, 0, fmt.Errorf("find this program's file: %w", err)
		}
		path = self
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, 0, fmt.Errorf("%s is not a regular file, so its size is not known beforehand", path)
	}
	return f, info.Size(), nil
}
