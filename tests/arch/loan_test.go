package arch

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Four files beside rnic/link/shm know that payloads may be lent and not
// copied. Others know at most that a payload that came may be void (Claim and
// Settle of wire.Packet).
func TestFewKnowOfLoans(t *testing.T) {
	want := []string{"rnic/engine/loan.go", "rnic/link/near.go", "rnic/near.go", "rnic/wire/loan.go"}
	words := []string{"Lease", "lease", "SetLease", "Loan", "Lent", "Lend", "lend", "Recall", "recall"}
	var got []string
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.path, "rnic/") || s.pkg == "rnic/link/shm" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.Ident); ok && slices.Contains(words, x.Name) && !slices.Contains(got, s.path) {
				got = append(got, s.path)
			}
			return true
		})
	}
	slices.Sort(got)
	require.Equal(t, want, got)
}
