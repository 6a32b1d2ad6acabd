package wire_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// specOpcodes is IBA 9.2.1 as the specification prints it: service bits,
// operation bits, description, contents of the packet after the BTH. It is
// written apart from the table under test.
const specOpcodes = `
RC 000 00000 | SEND First                           | PayLd
RC 000 00001 | SEND Middle                          | PayLd
RC 000 00010 | SEND Last                            | PayLd
RC 000 00011 | SEND Last with Immediate             | ImmDt PayLd
RC 000 00100 | SEND Only                            | PayLd
RC 000 00101 | SEND Only with Immediate             | ImmDt PayLd
RC 000 00110 | RDMA WRITE First                     | RETH PayLd
RC 000 00111 | RDMA WRITE Middle                    | PayLd
RC 000 01000 | RDMA WRITE Last                      | PayLd
RC 000 01001 | RDMA WRITE Last with Immediate       | ImmDt PayLd
RC 000 01010 | RDMA WRITE Only                      | RETH PayLd
RC 000 01011 | RDMA WRITE Only with Immediate       | RETH ImmDt PayLd
RC 000 01100 | RDMA READ Request                    | RETH
RC 000 01101 | RDMA READ response First             | AETH PayLd
RC 000 01110 | RDMA READ response Middle            | PayLd
RC 000 01111 | RDMA READ response Last              | AETH PayLd
RC 000 10000 | RDMA READ response Only              | AETH PayLd
RC 000 10001 | Acknowledge                          | AETH
RC 000 10010 | ATOMIC Acknowledge                   | AETH AtomicAckETH
RC 000 10011 | Compare Swap                         | AtomicETH
RC 000 10100 | Fetch Add                            | AtomicETH
RC 000 10110 | SEND Last with Invalidate            | IETH PayLd
RC 000 10111 | SEND Only with Invalidate            | IETH PayLd
RC 000 11100 | FLUSH                                | FETH RETH
RC 000 11101 | ATOMIC WRITE                         | RETH PayLd
UC 001 00000 | SEND First                           | PayLd
UC 001 00001 | SEND Middle                          | PayLd
UC 001 00010 | SEND Last                            | PayLd
UC 001 00011 | SEND Last with Immediate             | ImmDt PayLd
UC 001 00100 | SEND Only                            | PayLd
UC 001 00101 | SEND Only with Immediate             | ImmDt PayLd
UC 001 00110 | RDMA WRITE First                     | RETH PayLd
UC 001 00111 | RDMA WRITE Middle                    | PayLd
UC 001 01000 | RDMA WRITE Last                      | PayLd
UC 001 01001 | RDMA WRITE Last with Immediate       | ImmDt PayLd
UC 001 01010 | RDMA WRITE Only                      | RETH PayLd
UC 001 01011 | RDMA WRITE Only with Immediate       | RETH ImmDt PayLd
UD 011 00100 | SEND Only                            | DETH PayLd
UD 011 00101 | SEND Only with Immediate             | DETH ImmDt PayLd
`

// specLengths are the lengths of the headers in IBA 9.2 … 9.5, 12.6, 12.11,
// 13.4, A11 and A19.
var specLengths = map[string]int{
	"BTH": 12, "DETH": 8, "FETH": 4, "RETH": 16, "AtomicETH": 28, "AETH": 4, "AtomicAckETH": 8, "ImmDt": 4, "IETH": 4,
	"MAD": 24, "REQ": 232, "MRA": 232, "REJ": 232, "REP": 232, "RTU": 232, "DREQ": 232, "DREP": 232, "IPCM": 36,
	"SIDRREQ": 232, "SIDRREP": 232, "ClassPortInfo": 72,
}

func TestOpcodeTable(t *testing.T) {
	seen := map[wire.Opcode]bool{wire.CNP: true}
	for line := range strings.Lines(strings.TrimSpace(specOpcodes) + "\n") {
		part := strings.Split(line, "|")
		code := strings.Fields(part[0])
		desc, contents := strings.TrimSpace(part[1]), strings.Fields(part[2])
		n, err := strconv.ParseUint(code[1]+code[2], 2, 8)
		require.NoError(t, err)
		op := wire.Opcode(n)
		seen[op] = true
		t.Run(code[0]+" "+desc, func(t *testing.T) { checkOpcode(t, op, code[0], desc, contents) })
	}
	for i := range 256 {
		op := wire.Opcode(i)
		require.Equal(t, seen[op], op.Known(), "%v", op)
		if seen[op] {
			continue
		}
		require.Zero(t, op.HeaderLen())
		require.Zero(t, op.Operation())
		require.Zero(t, op.Position())
		require.Zero(t, op.Headers())
		require.False(t, op.IsRequest() || op.IsResponse() || op.HasPayload() || op.StartsMessage() || op.EndsMessage())
		require.False(t, op.IsSend() || op.IsWrite() || op.IsReadRequest() || op.IsReadResponse() || op.IsAtomic())
	}
}

func checkOpcode(t *testing.T, op wire.Opcode, service, desc string, contents []string) {
	require.True(t, op.Known())
	require.Equal(t, service, op.Service().String())
	require.Equal(t, service+" "+strings.ToUpper(desc), underscoreless(op.String()))

	length, payload := specLengths["BTH"], false
	var headers []string
	for _, c := range contents {
		if c == "PayLd" {
			payload = true
			continue
		}
		headers = append(headers, c)
		length += specLengths[c]
	}
	require.Equal(t, strings.Join(headers, "+"), op.Headers().String())
	require.Equal(t, length, op.HeaderLen())
	require.Equal(t, payload, op.HasPayload())
	require.Equal(t, strings.Contains(desc, "Immediate"), op.HasImm())
	require.Equal(t, strings.Contains(desc, "Invalidate"), op.HasInvalidate())

	position := "Only"
	for _, p := range []string{"First", "Middle", "Last"} {
		if strings.Contains(desc, p) {
			position = p
		}
	}
	require.Equal(t, position, op.Position().String())
	require.Equal(t, position == "First" || position == "Only", op.StartsMessage())
	require.Equal(t, position == "Last" || position == "Only", op.EndsMessage())

	response := strings.Contains(desc, "response") || strings.Contains(desc, "cknowledge")
	require.Equal(t, response, op.IsResponse())
	require.Equal(t, !response, op.IsRequest())
	require.Equal(t, strings.HasPrefix(desc, "SEND"), op.IsSend())
	require.Equal(t, strings.HasPrefix(desc, "RDMA WRITE"), op.IsWrite())
	require.Equal(t, desc == "RDMA READ Request", op.IsReadRequest())
	require.Equal(t, strings.HasPrefix(desc, "RDMA READ response"), op.IsReadResponse())
	require.Equal(t, desc == "Compare Swap" || desc == "Fetch Add", op.IsAtomic())

	found, ok := wire.FindOpcode(op.Service(), op.Operation(), op.Position(), op.Suffix())
	require.True(t, ok)
	require.Equal(t, op, found)
}

// underscoreless turns "RC RDMA_WRITE_FIRST" into "RC RDMA WRITE FIRST".
func underscoreless(name string) string { return strings.ReplaceAll(name, "_", " ") }

func TestCNP(t *testing.T) {
	require.Equal(t, "CNP", wire.CNP.String())
	require.Equal(t, "opcode 0x82", wire.Opcode(0x82).String())
	require.EqualValues(t, 0x81, wire.CNP)
	require.Equal(t, wire.ServiceCNP, wire.CNP.Service())
	require.Equal(t, 28, wire.CNP.HeaderLen(), "BTH and sixteen reserved bytes")
	require.False(t, wire.CNP.IsRequest() || wire.CNP.IsResponse() || wire.CNP.HasPayload())
}

func TestFindOpcodeRefuses(t *testing.T) {
	for _, c := range []struct {
		s wire.Service
		o wire.Operation
		p wire.Position
		x wire.Suffix
	}{
		{wire.ServiceRC, wire.OpSend, wire.First, wire.Immediate},
		{wire.ServiceRC, wire.OpWrite, wire.Only, wire.Invalidate},
		{wire.ServiceUC, wire.OpRead, wire.Only, wire.Plain},
		{wire.ServiceUD, wire.OpSend, wire.First, wire.Plain},
		{wire.ServiceRD, wire.OpSend, wire.Only, wire.Plain},
		{wire.ServiceRC, wire.OpNone, wire.NoPosition, wire.Plain},
		{255, 255, 255, 255},
	} {
		_, ok := wire.FindOpcode(c.s, c.o, c.p, c.x)
		require.False(t, ok, "%+v", c)
	}
	op, ok := wire.FindOpcode(wire.ServiceRC, wire.OpSend, wire.First, wire.Plain)
	require.True(t, ok, "opcode 0 is one")
	require.Equal(t, wire.RCSendFirst, op)
}
