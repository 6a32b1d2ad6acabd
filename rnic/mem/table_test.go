package mem

import (
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

const allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

func register(t testing.TB, tab *Table, n int, iova uint64, access abi.AccessFlags) *Region {
	t.Helper()
	r, err := tab.Register(1, make([]byte, n), iova, access)
	require.NoError(t, err)
	return r
}

func TestRegisterRefuses(t *testing.T) {
	tab := NewTable(1)
	for name, c := range map[string]struct {
		n      int
		iova   uint64
		access abi.AccessFlags
	}{
		"empty":                    {0, 0x1000, allAccess},
		"wraps":                    {2, math.MaxUint64, allAccess},
		"remote write, not local":  {8, 0x1000, abi.AccessRemoteWrite},
		"remote atomic, not local": {8, 0x1000, abi.AccessRemoteAtomic},
	} {
		_, err := tab.Register(1, make([]byte, c.n), c.iova, c.access)
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
	require.Zero(t, tab.Len())
	_, err := tab.Register(1, make([]byte, 1), math.MaxUint64, allAccess)
	require.NoError(t, err, "the last byte of the address space")
}

// The order of the checks: IBA 10.6.3.
func TestLookupErrors(t *testing.T) {
	tab := NewTable(7)
	r := register(t, tab, 64, 0x1000, abi.AccessLocalWrite|abi.AccessRemoteRead)
	for name, c := range map[string]struct {
		pd   PD
		key  uint32
		addr uint64
		n    uint64
		need abi.AccessFlags
		want error
	}{
		"whole":                 {1, r.Key(), 0x1000, 64, abi.AccessRemoteRead, nil},
		"last byte":             {1, r.Key(), 0x103f, 1, 0, nil},
		"nothing, any key":      {9, 0xdead, 0, 0, allAccess, nil},
		"other index":           {1, r.Key() + 1<<genBits, 0x1000, 1, 0, ErrKey},
		"other generation":      {1, r.Key() ^ 1, 0x1000, 1, 0, ErrKey},
		"domain before rights":  {2, r.Key(), 0x1000, 1, abi.AccessRemoteWrite, ErrPD},
		"rights before bounds":  {1, r.Key(), 0, 1, abi.AccessRemoteWrite, ErrAccess},
		"one below":             {1, r.Key(), 0xfff, 1, 0, ErrBounds},
		"one beyond":            {1, r.Key(), 0x1000, 65, 0, ErrBounds},
		"behind the end":        {1, r.Key(), 0x1040, 1, 0, ErrBounds},
		"address wraps":         {1, r.Key(), math.MaxUint64, 2, 0, ErrBounds},
		"length wraps":          {1, r.Key(), 0x1008, math.MaxUint64, 0, ErrBounds},
		"sum wraps to a good":   {1, r.Key(), 0x1020, math.MaxUint64 - 0x1f, 0, ErrBounds},
		"one of two rights":     {1, r.Key(), 0x1000, 1, abi.AccessRemoteRead | abi.AccessRemoteWrite, ErrAccess},
		"two rights, both here": {1, r.Key(), 0x1000, 1, abi.AccessRemoteRead | abi.AccessLocalWrite, nil},
	} {
		err := tab.Check(c.pd, c.key, c.addr, c.n, c.need)
		if c.want == nil {
			require.NoError(t, err, name)
		} else {
			require.Equal(t, c.want, err, name)
		}
	}
}

func TestRegionAttributes(t *testing.T) {
	r := register(t, NewTable(1), 64, 0x1000, abi.AccessRemoteRead)
	require.EqualValues(t, 0x1000, r.IOVA())
	require.EqualValues(t, 64, r.Length())
	require.Equal(t, abi.AccessRemoteRead, r.Access())
	for e := ErrKey; e <= ErrLength; e++ {
		require.NotContains(t, e.Error(), "unknown")
	}
	require.Contains(t, Error(99).Error(), "unknown")
}

func TestStaleKeyFails(t *testing.T) {
	tab := NewTable(3)
	seen := map[uint32]bool{}
	for range 4 * restSlots {
		r := register(t, tab, 8, 0x1000, allAccess)
		require.NotZero(t, r.Key())
		require.False(t, seen[r.Key()], "key %#x given twice", r.Key())
		seen[r.Key()] = true
		require.NoError(t, tab.Deregister(r.Key()))
		require.Equal(t, ErrKey, tab.Deregister(r.Key()))
	}
	for key := range seen {
		require.Equal(t, ErrKey, tab.Write(1, key, 0x1000, []byte{1}, true))
	}
	require.Zero(t, tab.Len())
	require.LessOrEqual(t, len(tab.slots), restSlots+2, "slots are used again")
}

func TestKeysStartRandom(t *testing.T) {
	a := register(t, NewTable(1), 8, 0, allAccess).Key()
	b := register(t, NewTable(2), 8, 0, allAccess).Key()
	require.NotEqual(t, a, b)
	require.NotEqual(t, a>>genBits, b>>genBits)
}

func TestKeyIsNeverZero(t *testing.T) {
	tab := NewTable(1)
	tab.base = 0
	// Turn the generation of the one slot round: 0 is left out.
	register(t, tab, 1, 0, allAccess)
	for range 300 {
		s := &tab.slots[0]
		require.NotZero(t, s.region.key)
		require.NoError(t, tab.Deregister(s.region.key))
		s.region = &Region{key: tab.key(0)}
		tab.live++
	}
}

func TestInvalidate(t *testing.T) {
	tab := NewTable(1)
	r := register(t, tab, 8, 0x1000, allAccess)
	require.Equal(t, ErrAccess, tab.Invalidate(1, r.Key()))
	r.AllowInvalidate()
	require.Equal(t, ErrPD, tab.Invalidate(2, r.Key()))
	require.Equal(t, ErrKey, tab.Invalidate(1, r.Key()^1))
	require.NoError(t, tab.Invalidate(1, r.Key()))
	require.Equal(t, ErrKey, tab.Check(1, r.Key(), 0x1000, 8, 0))
}
