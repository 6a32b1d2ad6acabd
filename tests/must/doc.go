// Package must gives the values of calls that a test cannot go on without:
//
//	pd := must.Get(ctx.AllocPD())(t)
//
// and says which error a call that is refused has:
//
//	must.Fail(ctx.AllocPD())(t, net.ErrClosed)
//
// Get is for the steps that lead to what is tested, and says no more than that
// and where one failed; where the call itself is tested, require.NoError with a
// sentence says what was expected.
package must
