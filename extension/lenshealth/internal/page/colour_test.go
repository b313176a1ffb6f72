// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// luminance of #rrggbb, from 0 to 1 (WCAG 2.2, "relative luminance").
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex[1:], 16, 24)
	require.NoError(t, err)
	linear := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// Who tells no colours apart still sees the order of the scale by its lightness, and each step apart from the next. What stands in a
// cell can be read on it (WCAG 2.2, 1.4.3). axe-core looks into no canvas.
func TestScaleCanBeReadWithoutColourVision(t *testing.T) {
	themes := regexp.MustCompile(`(?s):root(?:\[data-dark\])? \{(.*?)\n\}`).FindAllStringSubmatch(read("page.css"), -1)
	require.Len(t, themes, 2)
	for i, name := range []string{"light", "dark"} {
		value := map[string]float64{}
		for _, pair := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(themes[i][1], -1) {
			value[pair[1]] = luminance(t, pair[2])
		}
		for step := range 5 {
			colour := fmt.Sprintf("s%d", step)
			require.Contains(t, value, colour)
			require.GreaterOrEqual(t, contrast(value[colour], value[colour+"-text"]), 4.5, "%s: text on %s", name, colour)
			if step == 0 {
				continue
			}
			before := value[fmt.Sprintf("s%d", step-1)]
			require.Equal(t, name == "dark", value[colour] > before, "%s: %s goes the other way", name, colour)
			require.GreaterOrEqual(t, contrast(value[colour], before), 1.2, "%s: %s is as light as the step before", name, colour)
		}
		for _, text := range []string{"text", "muted", "good", "warn", "bad", "accent"} {
			for _, ground := range []string{"bg", "surface", "sunken"} {
				require.GreaterOrEqual(t, contrast(value[text], value[ground]), 4.5, "%s: %s on %s", name, text, ground)
			}
		}
	}
}
