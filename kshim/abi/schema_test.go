package abi

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSchema holds the rows against each other and against the structures.
func TestSchema(t *testing.T) {
	names := map[Form]map[string]bool{FormWrite: {}, FormExtended: {}, FormIoctl: {}, FormCM: {}}
	for _, e := range Schema() {
		require.False(t, names[e.Form][e.Name], "%s is there twice", e.Name)
		names[e.Form][e.Name] = true
		require.Equal(t, e.Supported(), e.Errno == 0, e.Name)
		switch e.Form {
		case FormIoctl:
			require.Same(t, e, LookupMethod(e.Object, e.Method), e.Name)
			require.Equal(t, e.Errno != syscall.EPROTONOSUPPORT, len(e.Attrs) > 0, e.Name)
		case FormCM:
			require.Same(t, e, LookupUCM(e.CM), e.Name)
			require.Equal(t, e.CM.String(), e.Name)
		default:
			require.Same(t, e, LookupCommand(e.Command), e.Name)
			require.Equal(t, e.Form == FormExtended, e.Command&CmdFlagExtended != 0, e.Name)
		}
		if e.Supported() && (e.Form == FormWrite || e.Form == FormCM) {
			require.NotNil(t, e.Request.New, e.Name)
		}
		layouts := []Layout{e.Request, e.Response, e.DriverResponse}
		for i := range e.Attrs {
			layouts = append(layouts, e.Attrs[i].Layout)
		}
		for _, l := range layouts {
			if l.New != nil {
				require.NoError(t, l.New().Parse(make([]byte, l.Size)), "%s: %T", e.Name, l.New())
			}
		}
	}
	require.Len(t, names[FormWrite], 41)
	require.Len(t, names[FormExtended], 12)
	require.Len(t, names[FormIoctl], 35)
	require.Len(t, names[FormCM], 23)
	require.Nil(t, LookupCommand(41))
	require.Nil(t, LookupCommand(CmdFlagExtended))
	require.Nil(t, LookupCommand(1<<30|CmdAllocPD))
	require.Nil(t, LookupUCM(23))
	require.Nil(t, LookupMethod(ObjectPD, 9))
}

// TestSchemaAttributes holds the attributes against what C says.
func TestSchemaAttributes(t *testing.T) {
	g := golden(t)
	for _, e := range Schema() {
		for i := range e.Attrs {
			a := &e.Attrs[i]
			id, ok := g.value["UVERBS_ATTR_"+a.Name]
			require.True(t, ok, "%s: no header has %s", e.Name, a.Name)
			require.Equal(t, id, uint64(a.ID), a.Name)
			require.LessOrEqual(t, a.Min, a.Max, a.Name)
			require.Equal(t, a.Type.NamesObject(), a.Max == 0, a.Name)
			require.NotEmpty(t, a.Type.String(), a.Name)
		}
	}
}
