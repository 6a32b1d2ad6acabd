package rnic

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddressTable: numbers begin at 1, rest as long as they can, and serve
// only the domain that the handle was made in.
func TestAddressTable(t *testing.T) {
	var table addressTable
	mine, other := &domain{}, &domain{}
	require.Nil(t, table.find(0, mine))
	first := &addressVector{pd: mine}
	require.NoError(t, table.add(first))
	require.EqualValues(t, 1, first.num)
	require.Same(t, first, table.find(1, mine))
	require.Nil(t, table.find(1, other))
	table.remove(first)
	require.Nil(t, table.find(1, mine))

	for range maxAH {
		require.NoError(t, table.add(&addressVector{pd: mine}))
	}
	require.EqualValues(t, 1, table.last, "2 … the highest, and round to 1")
	require.ErrorIs(t, table.add(&addressVector{pd: mine}), syscall.ENOMEM)
	table.remove(table.find(77, mine))
	again := &addressVector{pd: mine}
	require.NoError(t, table.add(again))
	require.EqualValues(t, 77, again.num, "the only one that is free")
}
