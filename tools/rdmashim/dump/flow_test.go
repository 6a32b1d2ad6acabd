package dump

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
)

// dumped runs dump on a recording and returns what it printed.
func dumped(t *testing.T, args ...string) string {
	t.Helper()
	return clitest.RunTool(t, append([]string{"dump"}, args...)...).Well(t).Stdout
}

func TestDumpFilters(t *testing.T) {
	loss, errs := recording("soft-rxe-6.1-ipv6-loss.pcap"), recording("rxe-6.1-rc-errors.pcap")
	for _, c := range []struct {
		args  string
		file  string
		lines int
		all   string // in every line
	}{
		{"--opcode nak", loss, 2, "NAK PSN sequence error"},
		{"--opcode rnr", errs, 39, "RNR NAK"},
		{"--opcode nak,rnr", errs, 39 + 15, "NAK"},
		{"--opcode RC_RDMA_READ_REQUEST", loss, 10, "RC RDMA_READ_REQUEST"},
		{"--opcode rdma-read-request", loss, 10, "RC RDMA_READ_REQUEST"},
		{"--opcode 0x0c", loss, 10, "RC RDMA_READ_REQUEST"},
		{"--opcode send_only", recording("rxe-6.1-uc-ud.pcap"), 14, "SEND_ONLY"},
		{"--opcode uc", recording("rxe-6.1-uc-ud.pcap"), 25, " UC "},
		{"--opcode send_last_with_invalidate,send_only_with_invalidate", recording("rxe-6.1-rc-mtu1024.pcap"), 2, " invalidate 0x"},
		{"--opcode cm", recording("rxe-6.1-cm.pcap"), 36, "mad CM"},
		{"--opcode ud", loss, 0, ""},
		{"--qpn 0x13", errs, 45, "psn 66"},
		{"--qpn 19", errs, 45, "psn 66"},
		{"--qpn 0x59 --opcode read", errs, 14, "RDMA_READ"},
		{"--qpn 0x44", recording("rxe-6.1-cm.pcap"), 3, ""}, // REQ, SEND, ACK
		{"--qpn 0x44,0x8a", recording("rxe-6.1-cm.pcap"), 4, ""},
		{"--qpn 1 -c 5", recording("rxe-6.1-cm.pcap"), 5, "mad CM"},
	} {
		lines := strings.Split(strings.TrimSuffix(dumped(t, append(strings.Fields(c.args), c.file)...), "\n"), "\n")
		if c.lines == 0 {
			require.Equal(t, []string{""}, lines)
			continue
		}
		require.Len(t, lines, c.lines, c.args)
		for _, l := range lines {
			require.Contains(t, l, c.all, c.args)
		}
	}
}

func TestDumpExplain(t *testing.T) {
	text := dumped(t, "--explain", "--opcode", "nak", recording("soft-rxe-6.1-ipv6-loss.pcap"))
	require.Equal(t, 4, strings.Count(text, "\n"))
	require.Contains(t, text, "icrc ok\n    nak: the responder expected PSN 6697109")
	var l Line
	line, _, _ := strings.Cut(dumped(t, "--explain", "-j", "--opcode", "rnr", recording("rxe-6.1-rc-errors.pcap")), "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &l))
	require.EqualValues(t, "rnr", l.Remarks[0].Kind)
	require.Contains(t, l.Remarks[0].Text, "no receive posted for the SEND")
}

func TestDumpSummary(t *testing.T) {
	file := recording("soft-rxe-6.1-ipv6-loss.pcap")
	text := dumped(t, "--summary", file)
	require.Equal(t, `RC fd00:77::9 qpn 0x71ff80 <> fd00:77::1 qpn 0x000031: 68 packets
  -> 10 messages (2 SEND, 2 WRITE, 6 READ) 8208 bytes out, 4104 read, in 24 packets; 9 sent again (37.50%); round trip 251.7 us (20.0 to 560.0, of 9)
     NAK PSN sequence error, packets were lost: 2
  <- 6 messages (2 SEND, 2 WRITE, 2 READ) 8208 bytes out, 4104 read, in 16 packets; 2 sent again (12.50%); round trip 946.0 us (170.0 to 4074.0, of 5)
`, text)
	var s Summary
	require.NoError(t, json.Unmarshal([]byte(dumped(t, "--summary", "-j", file)), &s))
	require.Len(t, s.Pairs, 1)
	require.EqualValues(t, 0x71ff80, *s.Pairs[0].A.QPN)
	require.Equal(t, 0.375, s.Pairs[0].AB.RetransmissionRate)
	require.EqualValues(t, 2, s.Pairs[0].AB.NAKs.Sequence)
	// Lines too, where asked for; and of one queue pair only.
	require.Equal(t, 68+1+4, strings.Count(dumped(t, "--summary", "--print", file), "\n"))
	require.NoError(t, json.Unmarshal([]byte(dumped(t, "--summary", "-j", "--qpn", "0x13", recording("rxe-6.1-rc-errors.pcap"))), &s))
	require.Len(t, s.Pairs, 1)
	require.JSONEq(t, `{"pairs":[]}`, dumped(t, "--summary", "-j", "--qpn", "9", file))
}

// --write writes the packets that passed, and we and tshark read them as the
// original.
func TestDumpWrite(t *testing.T) {
	file, path := recording("rxe-6.1-rc-errors.pcap"), filepath.Join(t.TempDir(), "out.pcapng")
	o := clitest.RunTool(t, "dump", "-w", path, "--opcode", "nak,rnr", "--explain", file)
	require.Zero(t, o.Code, o.Stderr)
	require.Contains(t, o.Stderr, "54 packets written to "+path)
	require.Equal(t, 54*2, strings.Count(o.Stdout, "\n"))
	want := dumped(t, "--opcode", "nak,rnr", file)
	require.Equal(t, want, dumped(t, path))
	info := must.Get(os.Stat(path))(t)
	require.Zero(t, info.Mode().Perm()&0o077, "a capture is its user's")
	require.NoError(t, os.Symlink(path, path+".link"))
	o = clitest.RunTool(t, "dump", "-w", path+".link", file)
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "it is a symbolic link, which is not followed; name the file itself")
	lines, whole := compare(t, path)
	require.Len(t, lines, 54)
	require.Equal(t, 54, whole)
	require.Contains(t, string(readFile(t, path)), "rnr: the receiver has no receive posted", "the comment")
	// Without --print nothing is printed; nothing at all is a capture, too.
	o = clitest.RunTool(t, "dump", "-w", path, "--qpn", "9", file).Well(t)
	require.Empty(t, o.Stdout)
	require.Empty(t, dumped(t, path))
	compare(t, path)
	// Through a pipe.
	first := clitest.Tool(t, "dump", "-w", "-", file)
	out := must.Get(first.Output())(t)
	second := clitest.Tool(t, "dump", "-")
	second.Stdin = strings.NewReader(string(out))
	require.Equal(t, dumped(t, file), clitest.Finish(t, second).Stdout)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	return b
}

// Any words for the filters are a filter or an error of one line.
func FuzzDumpFilter(f *testing.F) {
	f.Add("0x11,18", "nak,RC_SEND_ONLY,0x06")
	f.Add("", "")
	f.Add("16777216", "rc rdma-write-first,,")
	f.Fuzz(func(t *testing.T, qpns, opcodes string) {
		var d filter
		d.known = flow.New()
		for _, err := range []error{d.qpns.Set(qpns), d.opcodes.Set(opcodes)} {
			if err != nil {
				require.NotEmpty(t, cli.OneLine(err))
			}
		}
		require.Len(t, d.opcodes.tests, len(d.opcodes.words))
		for n := range 256 {
			var p dissect.Packet
			p.HasBTH, p.Wire.Opcode = true, wire.Opcode(n)
			_ = d.passes(&p)
		}
	})
}
