// Package must gives the values of calls that a test cannot go on without:
//
//	pd := must.Get(ctx.AllocPD())(t)
//
// It is for the steps that lead to what is tested, and says no more than that
// and where one failed; where the call itself is tested, require.NoError with a
// sentence says what was expected.
package must
