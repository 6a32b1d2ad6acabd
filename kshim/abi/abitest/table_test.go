package abitest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// TestTable: each command that the schema supports has its example, and each
// handle stands where the table says.
func TestTable(t *testing.T) {
	examples := map[string]bool{}
	for _, e := range abi.Schema() {
		if e.Form != abi.FormWrite && e.Form != abi.FormExtended || !e.Supported() {
			continue
		}
		x := Commands[e.Name]
		require.NotNil(t, x, e.Name)
		examples[e.Name] = true
		for _, h := range x.Handles {
			all := &Objects{UD: 9}
			set := map[abi.ObjectID][2]*uint32{
				abi.ObjectPD: {&all.PD, &all.FreePD}, abi.ObjectCQ: {&all.CQ, &all.FreeCQ}, abi.ObjectMR: {&all.MR, &all.FreeMR},
				abi.ObjectQP: {&all.QP, &all.FreeQP}, abi.ObjectAH: {&all.AH, &all.FreeAH}, abi.ObjectSRQ: {&all.SRQ, &all.FreeSRQ},
				abi.ObjectMW: {&all.MW, &all.FreeMW},
			}[h.Object]
			*set[0], *set[1] = 9, 9
			require.Equal(t, uint8(9), x.Bytes(e, all, 0)[h.At], "%s has a handle at %d", e.Name, h.At)
		}
	}
	require.Len(t, Commands, len(examples))
}
