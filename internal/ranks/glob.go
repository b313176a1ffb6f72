// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranks // import "github.com/lenscol/lenscol/internal/ranks"

type text interface{ ~string | ~[]byte }

// Matches reports whether glob matches all of name: * is any text, / included, ? is one byte. It goes back to the last
// star only, so it takes at most len(glob)·len(name) steps.
func Matches[T text](glob string, name T) bool {
	g, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, from = g, n
			g++
		case g < len(glob) && (glob[g] == '?' || glob[g] == name[n]):
			g++
			n++
		case star >= 0:
			from++
			g, n = star+1, from
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}
