package netlinkmgr

import (
	"encoding/hex"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordedAnswers reads the answers of a real kernel, with their commands.
func recordedAnswers(t testing.TB) (list []struct {
	command string
	b       []byte
}) {
	text, err := os.ReadFile("../tests/netlinktest/testdata/nldev-6.1.txt")
	require.NoError(t, err)
	command := ""
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case ">":
			command, _, _ = strings.Cut(rest, " ")
		case "<":
			b, err := hex.DecodeString(rest)
			require.NoError(t, err)
			list = append(list, struct {
				command string
				b       []byte
			}{command, b})
		}
	}
	require.Greater(t, len(list), 10)
	return list
}

// parseAny runs every parser; the first error of the one that is meant counts.
func parseAny(command string, b []byte) error {
	errs := map[string]error{}
	_, errs["1"] = parseDevice(b)
	_, errs["5"] = parsePort(b)
	_, errs["6"] = parseSystem(b)
	_, errs["9"] = parseSummary(b)
	_, errs["10"] = parseObjects(b, attrResQP, attrResQPEntry, parseQP)
	_, errs["11"] = parseObjects(b, attrResCMID, attrResCMIDEntry, parseCMID)
	_, errs["12"] = parseObjects(b, attrResCQ, attrResCQEntry, parseCQ)
	_, errs["13"] = parseObjects(b, attrResMR, attrResMREntry, parseMR)
	_, errs["14"] = parseObjects(b, attrResPD, attrResPDEntry, parsePD)
	_, errs["15"] = parseCharDev(b)
	_, errs["17"] = parseCounters(b)
	_, errs["22"] = parseObjects(b, attrResCtx, attrResCtxEntry, parseContext)
	_, errs["23"] = parseObjects(b, attrResSRQ, attrResSRQEntry, parseSRQ)
	return errs[command]
}

// TestTruncated: an answer that ends inside an attribute is an error.
func TestTruncated(t *testing.T) {
	for _, a := range recordedAnswers(t) {
		require.NoError(t, parseAny(a.command, a.b))
		whole := map[int]bool{0: true}
		for at := 0; at < len(a.b); {
			n := int(a.b[at]) | int(a.b[at+1])<<8
			at += n
			whole[at] = true // the last attribute's pad may be missing
			for ; at%4 != 0; at++ {
				whole[at+1] = true
			}
		}
		for n := range a.b {
			if err := parseAny(a.command, a.b[:n]); !whole[n] {
				require.ErrorIs(t, err, syscall.EBADMSG, "command %s, %d bytes of %d", a.command, n, len(a.b))
			}
		}
	}
}

func TestAttributes(t *testing.T) {
	b := appendString(appendU8(appendU32(nil, attrDevIndex, 7), attrLMC, 3), attrDevName, "rxe0")
	require.Equal(t, "0800010007000000"+"05000b0003000000"+"090002007278653000000000", hex.EncodeToString(b))
	a := newAttrs(b)
	require.True(t, a.next())
	require.EqualValues(t, 7, a.u32())
	require.True(t, a.next())
	require.EqualValues(t, 3, a.u8())
	require.True(t, a.next())
	require.Equal(t, "rxe0", a.str())
	require.False(t, a.next())
	require.NoError(t, a.err)

	// Flags in the type, a string without NUL, a pad that is missing.
	a = newAttrs([]byte{7, 0, 2, 0x80, 'r', 'x', 'e'})
	require.True(t, a.next())
	require.Equal(t, attrDevName, a.typ)
	require.Equal(t, "rxe", a.str())
	require.False(t, a.next())
	require.NoError(t, a.err)

	// The wrong size sticks.
	a = newAttrs(append(appendU8(nil, attrLID, 1), b...))
	require.True(t, a.next())
	require.Zero(t, a.u32())
	require.False(t, a.next())
	require.ErrorIs(t, a.err, syscall.EBADMSG)

	for _, bad := range []string{"00", "0300", "03000100", "0000", "ff000100", "0800010000", "04000100ff"} {
		b, err := hex.DecodeString(bad)
		require.NoError(t, err)
		a := newAttrs(b)
		for a.next() {
		}
		require.Error(t, a.err, bad)
	}
}

// TestIncomplete: objects without what makes them are errors.
func TestIncomplete(t *testing.T) {
	head := appendString(appendU32(nil, attrDevIndex, 0), attrDevName, "rxe0")
	for command, b := range map[string][]byte{
		"1":  appendString(nil, attrDevName, "rxe0"),
		"5":  head,
		"9":  head,
		"17": appendAttr(head, attrStatHWCounters, appendAttr(nil, attrStatHWCounterEntry, appendString(nil, attrStatHWCounterName, "x"))),
		"10": appendAttr(head, attrResQP, appendAttr(nil, attrResQPEntry, appendU32(nil, attrResLQPN, 1))),
		"11": appendAttr(head, attrResCMID, appendAttr(nil, attrResCMIDEntry, appendU32(nil, attrResPS, 1))),
		"12": appendAttr(head, attrResCQ, appendAttr(nil, attrResCQEntry, nil)),
		"13": appendAttr(head, attrResMR, appendAttr(nil, attrResMREntry, nil)),
		"14": appendAttr(head, attrResPD, appendAttr(nil, attrResPDEntry, nil)),
		"15": appendU32(nil, attrUverbsDriverID, 14),
		"22": head,
	} {
		require.ErrorIs(t, parseAny(command, b), syscall.EBADMSG, command)
	}
}

func TestDriverTable(t *testing.T) {
	b := appendString(nil, attrDriverString, "size")
	b = appendU32(b, attrDriverU32, 64)
	b = appendString(b, attrDriverString, "flags")
	b = appendU8(b, attrDriverPrintType, 1)
	b = appendU32(b, attrDriverU32, 255)
	b = appendString(b, attrDriverString, "name")
	b = appendString(b, attrDriverString, "deep")
	b = appendString(b, attrDriverString, "left")
	b = appendU32(b, attrDriverS32, 0xffffffff)
	a := newAttrs(appendAttr(nil, attrDriver, b))
	require.True(t, a.next())
	require.Equal(t, []DriverAttr{{Key: "size", Value: uint32(64)}, {Key: "flags", Value: uint32(255), Hex: true}, {Key: "name", Value: "deep"}, {Key: "left", Value: int32(-1)}}, parseDriver(a))
}

func TestSockaddr(t *testing.T) {
	b := make([]byte, 128)
	b[0], b[2], b[3], b[23] = afInet6, 0x1d, 0x2f, 1
	a := newAttrs(appendAttr(nil, attrResSrcAddr, b))
	require.True(t, a.next())
	require.Equal(t, "[::1]:7471", parseSockaddr(a).String())
	b[0] = 1
	a = newAttrs(appendAttr(nil, attrResSrcAddr, b))
	require.True(t, a.next())
	require.False(t, parseSockaddr(a).IsValid())
	require.NoError(t, a.err)
	for _, n := range []int{0, 4, 7} {
		a = newAttrs(appendAttr(nil, attrResSrcAddr, b[:n]))
		require.True(t, a.next())
		parseSockaddr(a)
		require.Error(t, a.err)
	}
}

// FuzzMessage: whatever the kernel sends, parsers end and do not panic.
func FuzzMessage(f *testing.F) {
	for _, a := range recordedAnswers(f) {
		f.Add(a.b)
	}
	f.Add([]byte{4, 0, 19, 128, 4, 0, 20, 128})
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = parseAny("1", b)
		_ = Request{Command: 99, Attrs: b}.String()
	})
}
