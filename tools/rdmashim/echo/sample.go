package echo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

const (
	// samplePort is where the sample's server listens on every transport.
	samplePort = 7475
	sampleALPN = "rdmashim-sample"
	onFlag     = `transports, separated by commas: tcp, udp (real QUIC), soft, or the name
of a kernel's device; options of a soft device follow it: soft?loss=1%`
)

// sample is a side of the sample: an echo over several registrations.
type sample struct {
	on string
	server
	exchange Exchange
	asJSON   bool
}

// SampleCommand is 'rdmashim sample quic'.
func SampleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quic",
		Short: "QUIC's streams over several transports at once (port 7475)",
		Long: `A server that echoes, and a client that sends the same streams and datagrams
over each transport at the same time, compares every byte, and shows the
connections with their queue pairs and the counters of QUIC's machinery: over
RDMA and TCP none against loss is at work.

All connections are encrypted with a certificate that the server makes and no
client checks.`,
		Example: `  rdmashim sample quic server
  rdmashim sample quic client 127.0.0.1
  rdmashim sample quic client 127.0.0.1 --on 'soft?loss=1%,udp' --json`,
		Args: cli.NoArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(sampleServerCommand(), sampleClientCommand())
	return cmd
}

func sampleServerCommand() *cobra.Command {
	s := &sample{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Echo streams and datagrams on every transport, until ended",
		Long: `Echo the streams and datagrams of each client, on every transport at the same
port, until ended. Prints 'listening ADDR:PORT'. It listens on this machine
only: to serve others, name an address of it by --listen.`,
		Example: "  rdmashim sample quic server\n  rdmashim sample quic server --listen 192.0.2.7 --on tcp,rxe0",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd, func() (func() error, error) { return s.open(cmd, s.address, true) })
		},
	}
	cmd.Flags().StringVar(&s.on, "on", "soft,tcp,udp", onFlag)
	cmd.Flags().StringVar(&s.address, "listen", peer.HostPort("127.0.0.1", samplePort), "address to listen on, ADDR:PORT; port 0 takes a free one")
	cmd.Flags().BoolVar(&s.Once, "once", false, "end after one connection on each transport")
	s.AddFlags(cmd)
	return cmd
}

func sampleClientCommand() *cobra.Command {
	s := &sample{exchange: Exchange{Size: 1}} // no messages
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT]",
		Short: "Send the same streams over every transport, and compare",
		Long: `Send --streams streams of --size bytes at once, and then --datagrams datagrams,
over each transport to 'rdmashim sample quic server', and compare what comes
back.
Only over udp may a datagram be lost. Any difference ends it with status 1.`,
		Example: `  rdmashim sample quic client 127.0.0.1
  rdmashim sample quic client 192.0.2.7 --on tcp,rxe0 --streams 32`,
		Args: cli.Host(0),
		RunE: func(cmd *cobra.Command, args []string) error { return s.ask(cmd, peer.HostPort(args[0], samplePort)) },
	}
	f := cmd.Flags()
	f.StringVar(&s.on, "on", "soft,tcp,udp", onFlag)
	f.IntVar(&s.exchange.Streams, "streams", 4, "how many streams, up to 64 at once")
	cli.BytesVar(f, &s.exchange.Bytes, "size", "", 1<<20, "bytes of each")
	f.IntVar(&s.exchange.Datagrams, "datagrams", 100, "how many datagrams, of 1000 bytes")
	cli.JSONFlag(cmd, &s.asJSON)
	return cmd
}

// open opens the registrations.
func (s *sample) open(cmd *cobra.Command, address string, server bool) (done func() error, err error) {
	list, err := parseTransports(s.on)
	if err != nil {
		return nil, err
	}
	s.link.secure.insecure = true
	if err := s.link.secure.prepare(server, address, sampleALPN); err != nil {
		return nil, err
	}
	return s.link.register(cmd.Context(), list, address, server)
}

// ask runs the exchange over all registrations at once.
func (s *sample) ask(cmd *cobra.Command, address string) (err error) {
	e := &s.exchange
	if err := e.prepare(); err != nil {
		return err
	}
	done, err := s.open(cmd, address, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	list := s.link.registered
	reports, errs := make([]*Transport, len(list)), make([]error, len(list))
	var all sync.WaitGroup
	for i, r := range list {
		all.Go(func() { reports[i], errs[i] = over(cmd.Context(), e, r, s.link.at.Address) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	report := SampleReport{Server: s.link.at.Address, Streams: e.Streams, Size: e.Bytes, Datagrams: e.Datagrams, Transports: reports}
	if s.asJSON {
		return cli.PrintLine(cmd.OutOrStdout(), report)
	}
	return report.print(cmd.OutOrStdout())
}

// over runs the exchange over a registration.
func over(ctx context.Context, e *Exchange, r *registration.Registration, address string) (*Transport, error) {
	c, err := r.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	state := c.ConnectionState()
	result, err := e.run(ctx, newSession(c))
	if err == nil && result.DatagramsBack < e.Datagrams && r.Kind() != "udp" {
		err = fmt.Errorf("%d of %d datagrams came back", result.DatagramsBack, e.Datagrams)
	}
	if err != nil {
		_ = c.CloseWithError(1, "the client found a difference")
		return nil, fmt.Errorf("%s: %w", r.Name(), err)
	}
	err = c.CloseWithError(0, "")
	return &Transport{
		Transport: r.Name(), Local: c.LocalAddr().String(), Device: state.Device, LocalQPN: state.LocalQPN, RemoteQPN: state.RemoteQPN,
		Seconds: result.Seconds, DatagramsBack: result.DatagramsBack, Stats: r.Stats(),
	}, err
}
