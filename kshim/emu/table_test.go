package emu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// TestHandlers: an entry of the schema is answered if, and only if, it says so.
func TestHandlers(t *testing.T) {
	for _, e := range abi.Schema() {
		handled := false
		switch e.Form {
		case abi.FormIoctl:
			handled = methodHandlers[methodID{e.Object, e.Method}] != nil || e.Object == abi.ObjectDevice && e.Method == abi.MethodInvokeWrite
			require.LessOrEqual(t, len(e.Attrs), maxAttrs, e.Name)
		case abi.FormCM:
			handled = int(e.CM) < len(ucmHandlers) && ucmHandlers[e.CM] != nil
		default:
			handled = commandHandler(e) != nil
		}
		require.Equal(t, e.Supported(), handled, e.Name)
	}
}
