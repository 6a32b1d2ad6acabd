package emu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// TestTable: what documents itself is what is dispatched.
func TestTable(t *testing.T) {
	list := Table()
	names := map[string]bool{}
	for _, e := range list {
		require.False(t, names[e.Name], e.Name)
		names[e.Name] = true
		require.Equal(t, e.Support == Unsupported, e.Reason != "", e.Name)
		require.Equal(t, e.Support == Unsupported, e.Errno != 0, e.Name)
		if e.Form == FormIoctl {
			m := lookupMethod(e.Object, e.Method)
			require.Equal(t, m != nil, len(e.Attrs) > 0, e.Name)
			require.LessOrEqual(t, len(e.Attrs), maxAttrs, e.Name)
			seen := map[abi.AttrID]bool{}
			for _, a := range e.Attrs {
				require.False(t, seen[a.ID], "%s has %s twice", e.Name, a.Name)
				seen[a.ID] = true
				require.LessOrEqual(t, a.Min, a.Max)
				require.Equal(t, a.Type.object(), a.Max == 0, a.Name)
				require.NotEmpty(t, a.Type.String())
			}
			continue
		}
		c := lookupCommand(e.Command)
		require.NotNil(t, c, e.Name)
		require.Equal(t, e.Support == Supported, c.do != nil, e.Name)
		require.Equal(t, e.Form == FormExtended, e.Command&abi.CmdFlagExtended != 0, e.Name)
	}
	require.True(t, names["ALLOC_PD"] && names["EX_CREATE_QP"] && names["DEVICE.INVOKE_WRITE"])
	require.Len(t, list, len(commands)+12+len(methods), "41 commands, 12 extended ones, and the methods")
}

// TestRequestSizes: the sizes of the table are those of the structures.
func TestRequestSizes(t *testing.T) {
	for _, e := range Table() {
		if n, known := requestSizes[e.Command]; known && e.Form == FormWrite {
			require.Equal(t, n, e.Request, e.Name)
		}
	}
}
