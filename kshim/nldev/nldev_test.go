package nldev

import (
	"encoding/hex"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestEncode(t *testing.T) {
	b := Encode("DEV_INDEX", uint32(7), "LMC", uint8(3), "DEV_NAME", "rxe0")
	require.Equal(t, "0800010007000000"+"05000b0003000000"+"090002007278653000000000", hex.EncodeToString(b))
	require.Equal(t, "0c001380"+"0800150001000000", hex.EncodeToString(Encode("RES_QP", Nested(Encode("RES_LQPN", uint32(1))))))
	require.EqualValues(t, 11, Command("RES_CM_ID_GET"))
	require.Panics(t, func() { Encode("NO_SUCH", "x") })
	require.Panics(t, func() { Command("NO_SUCH") })
}

type state uint8

type owner struct {
	PID uint32 `nldev:"RES_PID"`
}

type object struct {
	Index  uint32         `nldev:"DEV_INDEX,required"`
	Name   string         `nldev:"DEV_NAME"`
	LID    *uint32        `nldev:"LID"`
	State  *state         `nldev:"PORT_STATE"`
	DIM    bool           `nldev:"DEV_DIM"`
	Driver *uint64        `nldev:"UVERBS_DRIVER_ID"`
	Src    netip.AddrPort `nldev:"RES_SRC_ADDR"`
	Attrs  DriverAttrs    `nldev:"DRIVER"`
	List   []struct {
		LQPN uint32 `nldev:"RES_LQPN,required"`
	} `nldev:"RES_QP"`
	Owner owner
}

func TestDecode(t *testing.T) {
	b := Encode("DEV_INDEX", uint32(7), "DEV_NAME", "rxe0", "PORT_STATE", uint8(4), "DEV_DIM", uint8(1), "UVERBS_DRIVER_ID", uint32(14), "RES_PID", uint32(321),
		"RES_QP", Nested(Encode("RES_QP_ENTRY", Nested(Encode("RES_LQPN", uint32(17))), "LID", uint32(1), "RES_QP_ENTRY", Nested(Encode("RES_LQPN", uint32(18))))))
	var o object
	require.NoError(t, Decode(b, &o))
	require.EqualValues(t, 7, o.Index)
	require.Equal(t, "rxe0", o.Name)
	require.Nil(t, o.LID)
	require.EqualValues(t, 4, *o.State)
	require.True(t, o.DIM)
	require.EqualValues(t, 14, *o.Driver)
	require.EqualValues(t, 321, o.Owner.PID)
	require.Len(t, o.List, 2)
	require.EqualValues(t, 18, o.List[1].LQPN)

	// Flags in the type, a string without NUL, a pad that is missing.
	o = object{}
	require.NoError(t, Decode(append(Encode("DEV_INDEX", uint32(0)), 7, 0, 2, 0x80, 'r', 'x', 'e'), &o))
	require.Equal(t, "rxe", o.Name)

	for name, b := range map[string][]byte{
		"what is required is missing": Encode("DEV_NAME", "x"),
		"wrong size":                  Encode("DEV_INDEX", uint8(1)),
		"wrong size in an entry":      append(Encode("DEV_INDEX", uint32(0)), Encode("RES_QP", Nested(Encode("RES_QP_ENTRY", Nested(Encode("RES_LQPN", uint8(1))))))...),
		"missing in an entry":         append(Encode("DEV_INDEX", uint32(0)), Encode("RES_QP", Nested(Encode("RES_QP_ENTRY", Nested(nil))))...),
		"a short address":             append(Encode("DEV_INDEX", uint32(0)), Encode("RES_SRC_ADDR", []byte{2, 0, 0, 0, 1, 2, 3})...),
		"a driver's number":           append(Encode("DEV_INDEX", uint32(0)), Encode("DRIVER", Nested(Encode("DRIVER_STRING", "x", "DRIVER_U32", uint8(1))))...),
	} {
		require.ErrorIs(t, Decode(b, new(object)), syscall.EBADMSG, name)
	}
	for _, text := range []string{"00", "0300", "03000100", "0000", "ff000100", "0800010000", "04000100ff"} {
		b := must.Get(hex.DecodeString(text))(t)
		require.ErrorIs(t, Decode(b, new(object)), syscall.EBADMSG, text)
	}
	must.Fail(DecodeTable[owner](Encode("DEV_INDEX", uint32(0)), "RES_QP"))(t, syscall.EBADMSG)
}

func TestDriverTable(t *testing.T) {
	list, err := driverAttrs(Encode("DRIVER_STRING", "size", "DRIVER_U32", uint32(64), "DRIVER_STRING", "flags", "DRIVER_PRINT_TYPE", uint8(1), "DRIVER_U32", uint32(255),
		"DRIVER_STRING", "name", "DRIVER_STRING", "deep", "DRIVER_STRING", "left", "DRIVER_S32", uint32(0xffffffff)))
	require.NoError(t, err)
	require.Equal(t, DriverAttrs{{Key: "size", Value: uint32(64)}, {Key: "flags", Value: uint32(255), Hex: true}, {Key: "name", Value: "deep"}, {Key: "left", Value: int32(-1)}}, list)
}

func TestSockaddr(t *testing.T) {
	b := make([]byte, 128)
	b[0], b[2], b[3], b[23] = afInet6, 0x1d, 0x2f, 1
	a := must.Get(sockaddr(b))(t)
	require.Equal(t, "[::1]:7471", a.String())
	must.Fail(sockaddr(b[:23]))(t, syscall.EBADMSG)
	b[0] = 1
	a = must.Get(sockaddr(b))(t)
	require.False(t, a.IsValid())
}

// FuzzMessage: on any bytes the decoder ends and does not panic.
func FuzzMessage(f *testing.F) {
	f.Add(Encode("DEV_INDEX", uint32(1), "DEV_NAME", "rxe0", "RES_QP", Nested(Encode("RES_QP_ENTRY", Nested(Encode("RES_LQPN", uint32(1)))))))
	f.Add([]byte{4, 0, 19, 128, 4, 0, 20, 128})
	f.Fuzz(func(t *testing.T, b []byte) {
		var o object
		if err := Decode(b, &o); err != nil {
			require.ErrorIs(t, err, syscall.EBADMSG)
		}
	})
}
