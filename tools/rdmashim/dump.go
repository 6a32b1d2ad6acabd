package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/rnic/link/capture/dissect"
)

type dumpOptions struct {
	port   udpPort
	asJSON bool
}

// udpPort is a flag's UDP port, 1 … 65535.
type udpPort uint16

func (p *udpPort) String() string { return strconv.Itoa(int(*p)) }
func (*udpPort) Type() string     { return "port" }

func (p *udpPort) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("want a UDP port from 1 to 65535")
	}
	*p = udpPort(n)
	return nil
}

func newDump() *cobra.Command {
	o := dumpOptions{port: 4791}
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Show the RoCEv2 packets of a capture file",
		Long: `Show the RoCEv2 packets of a pcap or pcapng file (also gzipped; - is standard
input), a line each: time (UTC), direction if the file has it, addresses, opcode,
queue pair and PSN, extended headers, bytes of payload, and whether the ICRC is
right. It reads what tcpdump, Wireshark and soft devices with pcap=FILE write:
Ethernet, Linux cooked and raw IP, with VLAN tags, IPv4 and IPv6. Packets of the
connection manager are SENDs to queue pair 1, with their message's name, the
communication identifiers of sender and receiver, service, queue pair and PSN,
reason, addresses, and bytes of private data (zeros at its end do not count).

icrc is ok, bad, cut (the end was not captured) or unchecked (an IP header that
RoCEv2 does not allow). "malformed" says why a packet has no meaning.

With --json a packet is one line, an object with these keys. Numbers of 64 bits
are strings in hexadecimal; keys of headers that a packet lacks are absent.
  number, time           of the record in the file, from 1; RFC 3339, UTC
  interface, direction   as the file says; in or out
  vlan                   list of VLAN identifiers, outer first
  src, src_port, dst, dst_port, tclass, hop_limit, ip_id
  udp_length             bytes from BTH to ICRC
  bth                    opcode, name, solicited, migreq, pad, tver, pkey, fecn,
                         becn, dest_qpn, ackreq, psn
  deth                   qkey, src_qpn
  reth                   va, rkey, dma_len
  atomic_eth             va, rkey, swap_add, compare
  aeth                   syndrome, text, msn
  atomic_ack_eth         original
  immediate, invalidate_rkey
  feth                   placement, selection
  mad                    class, method, status, tid, attribute, name, cm: the message
                         of the connection manager, with the fields that it has:
                         local_id, remote_id, service_id, port, qpn, psn, ca_guid,
                         responder_resources, initiator_depth, rnr_retry_count,
                         flow_control, srq, target_ack_delay, about (0 REQ, 1 REP, 2
                         other), timeout, reason, reason_text, info, private_length,
                         private (hexadecimal); ip: version, src_port, src, dst; req:
                         remote_timeout, local_timeout, transport, retry_count,
                         max_cm_retries, mtu, pkey, local_gid, remote_gid, flow_label,
                         tclass, hop_limit, ack_timeout
  payload_length         bytes without pad
  icrc, icrc_value       as above; the CRC-32 received (tshark shows its bytes reversed)
  malformed              only of such a packet`,
		Example: "  rdmashim dump capture.pcapng\n  tcpdump -i eth0 -w - udp port 4791 | rdmashim dump -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("dump takes one capture file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, live := cmd.InOrStdin(), args[0] == "-"
			if !live {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			return dump(in, cmd.OutOrStdout(), cmd.ErrOrStderr(), live, o)
		},
	}
	cmd.Flags().VarP(&o.port, "port", "p", "show the packets to or from this UDP port")
	cmd.Flags().BoolVarP(&o.asJSON, "json", "j", false, "print JSON, a line a packet")
	return cmd
}

// dump prints the packets of in. live: somebody watches them come.
func dump(in io.Reader, stdout, stderr io.Writer, live bool, o dumpOptions) error {
	r, err := dissect.NewReader(in, uint16(o.port))
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(stdout, 64<<10)
	err = dumpPackets(r, out, live, o)
	if e := out.Flush(); err == nil {
		err = e
	}
	if n := r.Missing(); n > 0 {
		fmt.Fprintf(stderr, "rdmashim: %d packets are missing: whoever captured them could not keep up or write\n", n)
	}
	return err
}

func dumpPackets(r *dissect.Reader, out *bufio.Writer, live bool, o dumpOptions) error {
	var p dissect.Packet
	var line []byte
	asJSON := json.NewEncoder(out)
	for {
		err := r.Next(&p)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if o.asJSON {
			err = asJSON.Encode(newDumpLine(&p))
		} else {
			line = appendDumpText(line[:0], &p)
			_, err = out.Write(line)
		}
		if err == nil && live {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
	}
}
