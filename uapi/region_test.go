package uapi

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

var region7 = Region{Addr: 0x7f0000001000, Length: 4096, RKey: 0xabcd01, Access: AccessLocalWrite | AccessRemoteWrite | AccessRemoteRead}

const (
	region7Text = "mr1,addr=0x7f0000001000,length=4096,rkey=0xabcd01,access=0x7"
	region7Hex  = "00007f0000001000" + "0000000000001000" + "00abcd01" + "00000007"
)

func TestRegionForms(t *testing.T) {
	b := must.Get(region7.MarshalBinary())(t)
	require.Equal(t, region7Hex, hex.EncodeToString(b))
	require.Equal(t, region7Text, region7.String())
	for _, r := range []Region{region7, {Length: 1}, {Addr: math.MaxUint64 - 1, Length: 1, RKey: math.MaxUint32}} {
		b := must.Get(r.MarshalBinary())(t)
		var fromBinary, fromJSON Region
		require.NoError(t, fromBinary.UnmarshalBinary(b))
		require.Equal(t, r, fromBinary)
		text := must.Get(json.Marshal(r))(t)
		require.NoError(t, json.Unmarshal(text, &fromJSON))
		require.Equal(t, r, fromJSON)
	}
}

func TestRegionRefuses(t *testing.T) {
	for text, errno := range map[string]syscall.Errno{
		"":                                    syscall.EINVAL,
		"mr1":                                 syscall.EINVAL,
		"mr2,addr=1,length=1":                 syscall.EPROTONOSUPPORT,
		region7Text + ",":                     syscall.EINVAL,
		strings.Repeat("m", 1000):             syscall.EINVAL,
		"mr1,addr=1,length=0,rkey=1,access=0": syscall.EINVAL,
		"mr1,addr=0xffffffffffffffff,length=2,rkey=1,access=0": syscall.EINVAL,
		"mr1,addr=1,length=1,rkey=0x100000000,access=0":        syscall.EINVAL,
		"mr1,addr=1,length=1,rkey=1,access=0x10":               syscall.EINVAL,
		"mr1,length=1,addr=1,rkey=1,access=0":                  syscall.EINVAL,
		"mr1,addr=-1,length=1,rkey=1,access=0":                 syscall.EINVAL,
	} {
		r, err := ParseRegion(text)
		require.ErrorIs(t, err, errno, text)
		require.Zero(t, r)
	}
	b := must.Get(hex.DecodeString(region7Hex))(t)
	var r Region
	for n := range b {
		require.ErrorIs(t, r.UnmarshalBinary(b[:n]), syscall.EINVAL, "%d bytes", n)
	}
	require.ErrorIs(t, r.UnmarshalBinary(append(b, 0)), syscall.EINVAL)
	require.ErrorIs(t, r.UnmarshalBinary(make([]byte, RegionSize)), syscall.EINVAL, "private data that was not given")
	require.Zero(t, r)
	_, err := Region{}.MarshalText()
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = Region{}.MarshalBinary()
	require.ErrorIs(t, err, syscall.EINVAL)
}

func TestRegRegion(t *testing.T) {
	d := testDevice(t, "sim?net=region")
	mr, region, err := d.RegRegion(make([]byte, 100), MRConfig{Access: AccessRemoteRead})
	require.NoError(t, err)
	info := must.Get(d.QueryMR(mr))(t)
	require.Equal(t, info.Region(), region)
	mr, region, err = d.RegRegion(nil, MRConfig{})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.Equal(t, MR(-1), mr)
	require.Zero(t, region)
}

func FuzzRegion(f *testing.F) {
	b, _ := hex.DecodeString(region7Hex)
	f.Add(b, region7Text)
	f.Add(make([]byte, RegionSize), "mr1,addr=1,length=1,rkey=1,access=0")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		var r Region
		if err := r.UnmarshalBinary(b); err == nil {
			again := must.Get(r.MarshalBinary())(t)
			require.Equal(t, b, again)
		} else {
			require.Zero(t, r)
		}
		r, err := ParseRegion(text)
		if err != nil {
			require.Zero(t, r)
			return
		}
		again := must.Get(ParseRegion(r.String()))(t)
		require.Equal(t, r, again)
	})
}
