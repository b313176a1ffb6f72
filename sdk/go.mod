module github.com/lenscol/lenscol/sdk

go 1.26
