// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package advice // import "github.com/lenscol/lenscol/internal/advice"

import "slices"

// Distance is the number of letters to insert, delete or replace to turn a into b (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{row[j] + 1, row[j+1] + 1, cost})
		}
	}
	return row[len(b)]
}
