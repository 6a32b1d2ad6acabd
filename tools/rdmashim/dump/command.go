package dump

import (
	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

type options struct {
	port    uint16 // UDP
	asJSON  bool
	live    string
	filter  filter
	file    string // to write into
	explain bool
	summary bool
	print   bool
	count   int

	unzipped int64 // bytes that a gzipped file may hold
	qmux     bool
}

// lines reports whether packets are printed.
func (o *options) lines() bool { return o.print || o.explain || !o.summary && o.file == "" }

func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "dump FILE | --live IFACE",
		Short: "Show the RoCEv2 packets of a capture file or an interface",
		Long: `Show the RoCEv2 packets of a pcap or pcapng file (also gzipped; - is standard
input), a line each: time (UTC), direction if the file has it, addresses,
opcode, queue pair and PSN, extended headers, bytes of payload, and whether the
ICRC is right. It reads what tcpdump, Wireshark and soft devices with pcap=FILE
write: Ethernet, Linux cooked and raw IP, with VLAN tags, IPv4 and IPv6, and
inside VXLAN, GENEVE, GRE, ERSPAN, IP in IP, SRv6, MPLS, PPPoE and LLC. Records
that it does not understand are counted by kind, on standard error; a file that
has nothing else is an error. Packets of the connection manager are SENDs to
queue pair 1, with their message's name, the communication identifiers of sender
and receiver, service, queue pair and PSN, reason, addresses, and bytes of
private data (zeros at its end do not count).

icrc is ok, bad, cut (the end was not captured) or unchecked (an IP header that
RoCEv2 does not allow). "malformed" says why a packet has no meaning. Datagrams
that hold several packets, as GSO and GRO make them for the machine itself, are
taken apart.

--live captures an interface (any: all of them) until it is interrupted; Linux
only, with root or CAP_NET_RAW. --qpn keeps packets to and from queue pairs; the
sending one is not in a packet, it is known from answers and from the connection
manager. --opcode keeps opcodes by name or number, and groups: send, write,
read, atomic, ack, nak, rnr, cm, cnp, rc, uc, ud. -w writes what passed as
pcapng instead of printing it (- is standard output); --print does both.
--explain adds a line under a packet that was sent again, refuses or reports
something, saying what it means; in the file it is the packet's comment.
--summary prints, at the end, what each pair of queue pairs exchanged; --opcode
does not touch it. Times and round trips are those at the place of the capture.

--qmux shows the QMux in a capture instead, a line for each record with its
frames, and the ends of streams of bytes: over TCP, over RDMA between programs
that use uapi/rdmanet, whose connecting must be in the capture, and of a file of
the bytes that one side sent. TLS cannot be read. Bytes that are no QMux are one
line.

With --json a packet is one line, an object, as are the kinds of records that
were not understood and the summary, at the end. docs/json.md has the keys.`,
		Example: `  rdmashim dump capture.pcapng
  rdmashim dump --summary capture.pcapng
  rdmashim dump --explain --qpn 0x11 capture.pcapng
  sudo rdmashim dump --live eth0 --opcode nak,rnr
  sudo rdmashim dump --live any -w out.pcapng --summary
  tcpdump -i eth0 -w - udp port 4791 | rdmashim dump -
  rdmashim dump --qmux capture.pcapng`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.live != "" && len(args) != 0:
				return cli.Usagef("dump takes a capture file or --live, not both")
			case o.live == "" && len(args) != 1:
				return cli.Usagef("dump takes one capture file, or - for standard input, or --live IFACE")
			case o.file == "-" && (o.lines() || o.summary):
				return cli.Usagef("-w - puts the packets on standard output: nothing else can be printed there")
			case o.qmux && (o.live != "" || o.file != "" || o.explain || o.summary || o.filter.set()):
				return cli.Usagef("--qmux shows a file, by itself or with --json, --port and --count")
			case o.port == 0:
				return cli.Usagef("--port wants a UDP port from 1 to 65535")
			case o.count < 0:
				return cli.Usagef("--count wants a number of packets, not %d", o.count)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d := dumper{o: o, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
			if o.live != "" {
				return d.interfaceOf(cmd.Context())
			}
			return d.fileAt(args[0], cmd.InOrStdin())
		},
	}
	f := cmd.Flags()
	f.Uint16VarP(&o.port, "port", "p", wire.Port, "show the packets to or from this UDP port")
	f.BoolVarP(&o.asJSON, "json", "j", false, "print JSON, a line a packet")
	f.StringVar(&o.live, "live", "", "capture this interface, or any (Linux; root or CAP_NET_RAW)")
	f.Var(&o.filter.qpns, "qpn", "show the packets to and from these queue pairs (0x11,18)")
	f.Var(&o.filter.opcodes, "opcode", "show the packets of these opcodes (nak,RC_SEND_ONLY,0x06)")
	f.StringVarP(&o.file, "write", "w", "", "write the packets into this pcapng file, or - for standard output")
	f.BoolVar(&o.print, "print", false, "print packets also with --write or --summary")
	f.BoolVar(&o.explain, "explain", false, "say in words what retransmissions and NAKs mean")
	f.BoolVar(&o.summary, "summary", false, "print what each pair of queue pairs exchanged")
	f.BoolVar(&o.qmux, "qmux", false, "show the records and frames of QMux, over TCP and RDMA")
	cli.BytesVar(f, &o.unzipped, "max-unzipped", "", dissect.MaxUnzipped, "most bytes of a gzipped file's contents that are read")
	f.IntVarP(&o.count, "count", "c", 0, "end after this many packets, or records (0: never)")
	_ = cmd.RegisterFlagCompletionFunc("live", completeLive)
	_ = cmd.RegisterFlagCompletionFunc("opcode", completeOpcodes)
	return cmd
}
