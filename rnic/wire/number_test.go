package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

func TestPSN(t *testing.T) {
	const half = 1 << 23
	for _, c := range []struct {
		p    wire.PSN
		n    int
		want wire.PSN
	}{
		{0, 0, 0}, {0, 1, 1}, {0, -1, 0xffffff}, {0xffffff, 1, 0}, {0xfffff0, 0x20, 0x10},
		{0x10, -0x20, 0xfffff0}, {5, 1 << 24, 5}, {0x7fffff, 1, 0x800000}, {3, -1 << 24, 3},
	} {
		require.Equal(t, c.want, c.p.Add(c.n), "%#x + %d", c.p, c.n)
	}
	require.Equal(t, wire.PSN(0), wire.MaxPSN.Next())
	for _, p := range []wire.PSN{0, 1, half - 1, half, half + 1, 0xfffffe, 0xffffff} {
		for _, n := range []int{-half, -half + 1, -2, -1, 0, 1, 2, half - 1} {
			q := p.Add(n)
			require.Equal(t, int32(n), q.Sub(p), "%#x %d", p, n)
			require.Equal(t, n < 0, q.Before(p))
			require.Equal(t, n > 0, q.After(p))
		}
	}
	for _, c := range []struct {
		p, first wire.PSN
		n        int
		want     bool
	}{
		{5, 5, 0, false}, {5, 5, 1, true}, {6, 5, 1, false}, {4, 5, 100, false},
		{0, 0xffffff, 2, true}, {1, 0xffffff, 2, false}, {0x800000, 0, half, false}, {0x800000, 0, half + 1, true},
		{4, 5, 1 << 24, true},
	} {
		require.Equal(t, c.want, c.p.In(c.first, c.n), "%+v", c)
	}
}

func TestMSN(t *testing.T) {
	require.Equal(t, wire.MSN(0), wire.MSN(0xffffff).Next())
	require.Equal(t, int32(3), wire.MSN(1).Sub(0xfffffe))
	require.Equal(t, int32(-3), wire.MSN(0xfffffe).Sub(1))
}

func TestQPN(t *testing.T) {
	require.Equal(t, "0x00002a", wire.QPN(42).String())
	require.True(t, wire.MulticastQPN.Valid())
	require.False(t, (wire.MulticastQPN + 1).Valid())
}

func TestPKey(t *testing.T) {
	for _, c := range []struct {
		k, q wire.PKey
		want bool
	}{
		{0xffff, 0xffff, true}, {0x7fff, 0xffff, true}, {0xffff, 0x7fff, true},
		{0x7fff, 0x7fff, false}, // two limited members
		{0x8001, 0x8002, false},
		{0x8000, 0x8000, false}, // no partition
	} {
		require.Equal(t, c.want, c.k.Match(c.q), "%#x %#x", c.k, c.q)
	}
}

func TestSyndrome(t *testing.T) {
	require.Equal(t, wire.Syndrome(0x1f), wire.SyndromeACK(wire.NoCredits))
	require.Equal(t, wire.Syndrome(0x2c), wire.SyndromeRNR(12))
	for code, want := range map[wire.NAKCode]wire.Syndrome{
		wire.NAKPSNSequence: 0x60, wire.NAKInvalidRequest: 0x61, wire.NAKRemoteAccess: 0x62,
		wire.NAKRemoteOperational: 0x63, wire.NAKInvalidRD: 0x64,
	} {
		require.Equal(t, want, wire.SyndromeNAK(code))
	}
	// Every value is of one kind, and made by its constructor from its code.
	for i := range 256 {
		s := wire.Syndrome(i)
		switch i >> 5 {
		case 0:
			require.True(t, s.IsACK() && !s.IsRNR() && !s.IsNAK() && !s.IsReserved())
			require.Equal(t, s, wire.SyndromeACK(s.Credits()))
		case 1:
			require.True(t, s.IsRNR() && !s.IsACK() && !s.IsNAK() && !s.IsReserved())
			require.Equal(t, s, wire.SyndromeRNR(s.RNRTimer()))
		case 3:
			require.True(t, s.IsNAK() && !s.IsACK() && !s.IsRNR())
			require.Equal(t, i&0x1f > 4, s.IsReserved())
			require.Equal(t, s, wire.SyndromeNAK(s.NAK()))
		default:
			require.True(t, s.IsReserved() && !s.IsACK() && !s.IsRNR() && !s.IsNAK())
		}
	}
	// Codes that are too wide do not change the kind.
	require.True(t, wire.SyndromeACK(0xff).IsACK())
	require.True(t, wire.SyndromeRNR(0xff).IsRNR())
	require.True(t, wire.SyndromeNAK(0xff).IsNAK())

	for s, want := range map[wire.Syndrome]string{
		0x1f: "ACK", 0x05: "ACK credits 5", 0x2c: "RNR NAK timer 12 (0.64ms)", 0x20: "RNR NAK timer 0 (655.36ms)",
		0x60: "NAK PSN sequence error", 0x62: "NAK remote access error", 0x65: "reserved syndrome 0x65", 0xff: "reserved syndrome 0xff",
	} {
		require.Equal(t, want, s.String())
	}
}

// specRNRTimers is IBA table 45, milliseconds for the codes 0 … 31.
const specRNRTimers = `
655.36 0.01 0.02 0.03 0.04 0.06 0.08 0.12
0.16 0.24 0.32 0.48 0.64 0.96 1.28 1.92
2.56 3.84 5.12 7.68 10.24 15.36 20.48 30.72
40.96 61.44 81.92 122.88 163.84 245.76 327.68 491.52`

func TestRNRTimer(t *testing.T) {
	table := strings.Fields(specRNRTimers)
	require.Len(t, table, 32)
	for code, want := range table {
		timer := wire.RNRTimer(code)
		require.Equal(t, want+"ms", timer.String())
		whole, hundredths, _ := strings.Cut(want, ".")
		require.Equal(t, atoi(t, whole+hundredths)*10_000, timer.Nanoseconds(), "code %d", code)
		require.Equal(t, timer.Nanoseconds(), (timer | 0xe0).Nanoseconds(), "only five bits count")
	}
}

func atoi(t *testing.T, s string) (n int64) {
	t.Helper()
	for _, c := range s {
		require.True(t, c >= '0' && c <= '9')
		n = n*10 + int64(c-'0')
	}
	return n
}

func TestAckTimeout(t *testing.T) {
	for code, want := range map[wire.AckTimeout]int64{
		0: 0, 1: 8_192, 8: 1_048_576, 14: 67_108_864, 18: 1_073_741_824, 31: 8_796_093_022_208, 32: 0, 33: 8_192,
	} {
		require.Equal(t, want, code.Nanoseconds(), "code %d", code)
	}
}

// TestCreditCount follows the list of credit codes in IBA 9.7.7.2.
func TestCreditCount(t *testing.T) {
	want := []int{
		0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
		2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	}
	require.Len(t, want, 31)
	for code, n := range want {
		got, limited := wire.CreditCount(uint8(code))
		require.True(t, limited)
		require.Equal(t, n, got, "code %d", code)
	}
	_, limited := wire.CreditCount(wire.NoCredits)
	require.False(t, limited)
}

func TestStrings(t *testing.T) {
	seen := map[string]bool{}
	for e := wire.Error(1); int(e) < wire.NumErrors; e++ {
		require.False(t, seen[e.Error()])
		seen[e.Error()] = true
		require.NotContains(t, e.Error(), "unknown")
	}
	require.Contains(t, wire.Error(0).Error(), "unknown")
	require.Contains(t, wire.Error(200).Error(), "unknown")
	require.Equal(t, "RDMA READ response", wire.OpReadResponse.String())
	require.Equal(t, "CNP", wire.OpCongestion.String())
	require.Equal(t, "unknown operation 200", wire.Operation(200).String())
	require.Equal(t, "Middle", wire.Middle.String())
	require.Equal(t, "unknown position 200", wire.Position(200).String())
	require.Equal(t, "with invalidate", wire.Invalidate.String())
	require.Equal(t, "unknown suffix 200", wire.Suffix(200).String())
	for i, want := range []string{"RC", "UC", "RD", "UD", "CNP", "XRC", "reserved service", "reserved service"} {
		require.Equal(t, want, wire.Opcode(i<<5|0x1f).Service().String())
	}
	require.Equal(t, "plain", wire.Plain.String())
	require.Equal(t, "with immediate", wire.Immediate.String())
	require.Equal(t, "DETH+ImmDt", wire.UDSendOnlyImm.Headers().String())
	require.Equal(t, "reserved code 9", wire.NAKCode(9).String())
}
