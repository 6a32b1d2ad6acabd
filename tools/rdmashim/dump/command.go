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
the bytes that one side sent. TLS cannot be read; 'rdmashim echo --record' has
what is inside. Bytes that are no QMux are one line.

With --json a packet is one line, an object with these keys. Numbers of 64 bits
are strings in hexadecimal; keys of headers that a packet lacks are absent.
  number, time           of the record in the file, from 1; RFC 3339, UTC
  interface, direction   as the file says; in or out
  vlan                   list of VLAN identifiers, outer first
  src, src_port, dst, dst_port, tclass, hop_limit, ip_id
  udp_length             bytes from BTH to ICRC
  bth                    opcode, name, solicited, migreq, pad, tver, pkey, fecn,
                         becn, dest_qpn, ackreq, selective, private_mtu,
                         proven, psn
  deth                   qkey, src_qpn
  reth                   va, rkey, dma_len
  atomic_eth             va, rkey, swap_add, compare
  aeth                   syndrome, text, msn, kept
  atomic_ack_eth         original
  immediate, invalidate_rkey
  feth                   placement, selection
  mad                    class, method, status, tid, attribute, name, cm: the
                         message of the connection manager, with the fields that
                         it has: local_id, remote_id, request_id, service_id,
                         port, qpn, qkey, pkey, psn, ca_guid,
                         responder_resources, initiator_depth,
                         rnr_retry_count, flow_control, srq, target_ack_delay,
                         about (0 REQ, 1 REP, 2 other), timeout, reason,
                         reason_text, status, status_text, info,
                         private_length, private (hexadecimal); ip: version,
                         src_port, src, dst; req:
                         remote_timeout, local_timeout, transport, retry_count,
                         max_cm_retries, mtu, pkey, local_gid, remote_gid,
                         flow_label, tclass, hop_limit, ack_timeout
  payload_length         bytes without pad
  icrc, icrc_value       as above; the CRC-32 received (tshark shows its bytes
                         reversed)
  malformed              only of such a packet
  remarks                with --explain, a list of: kind (retransmission,
                         out-of-order, gap, nak, rnr, repeated-answer, damaged,
                         congestion, rejected, anew), text
If there are records that were not understood, the last line is an object:
others, a list of kind, records, understood, of all that hold no packet.
With --summary the last line is an object: others, and pairs, a list of service,
a and b (address, qpn, absent if unknown), first, last, packets, ab and ba: what
a asked of b, and b of a: messages (send, write, read, atomic, other), bytes,
read_bytes, requests, retransmitted, retransmission_rate, repeated_bytes,
out_of_order, missing, responses, repeated, naks (sequence, invalid, access,
operational, rnr, other), damaged, marked, waiting, and rtt (samples, min_us,
smoothed_us, max_us), absent without a sample.
With --qmux a line has: time, transport (tcp, rdma or file), src, dst, record
(its number in its direction), length, frames (name, fields, fin, error, reason,
parameters), event (end or reset), problem.`,
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
			if o.qmux {
				return d.qmuxAt(args[0], cmd.InOrStdin())
			}
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
