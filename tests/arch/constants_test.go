package arch

import (
	"go/ast"
	"go/constant"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ties are constants of different floors that must agree, with why.
var ties = []struct {
	left string
	is   token.Token
	than string
	why  string
}{
	{"uapi/rpc/session/lead.go:parked", token.EQL, "rnic/drive/habits.go:PollPause",
		"a caller that comes back to lead a session leads its device too: both keep the place as long"},
	{"uapi/poll.go:nap", token.LSS, "rnic/drive/habits.go:PollPause",
		"a program that naps between polls still polls: the device's listener stays away"},
	{"uapi/poll.go:yieldEvery", token.LEQ, "rnic/drive/habits.go:goschedEvery",
		"a program lets goroutines in before its device does it in the midst of a poll"},
	{"rnic/drive/habits.go:yieldEvery", token.LSS, "uapi/poll.go:yieldEvery",
		"the peer on the same processor gets it before the program's own goroutines do"},
}

func TestConstantsAgree(t *testing.T) {
	for _, c := range ties {
		left, right := constantOf(t, c.left), constantOf(t, c.than)
		require.True(t, constant.Compare(left, c.is, right), "%s = %v must be %v %s = %v: %s", c.left, left, c.is, c.than, right, c.why)
	}
}

// constantOf is the value of a constant, by file and name.
func constantOf(t *testing.T, at string) constant.Value {
	t.Helper()
	file, name, _ := strings.Cut(at, ":")
	for _, s := range sources(t) {
		if s.path != file {
			continue
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, n := range v.Names {
					if n.Name == name {
						return value(t, at, v.Values[i])
					}
				}
			}
		}
	}
	require.FailNow(t, "no constant "+at)
	return nil
}

var units = map[string]time.Duration{"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second}

// value evaluates products and shifts of numbers and units of time.
func value(t *testing.T, at string, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.SelectorExpr:
		if unit, ok := units[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.BinaryExpr:
		x, y := value(t, at, e.X), value(t, at, e.Y)
		if by, exact := constant.Uint64Val(y); e.Op == token.SHL && exact {
			return constant.Shift(x, e.Op, uint(by))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	require.FailNowf(t, "not a product of numbers and units", "%s: %T", at, e)
	return nil
}
