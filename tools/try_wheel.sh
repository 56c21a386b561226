#!/usr/bin/env bash
# Run the main commands once with the rankwright that is first on the PATH, in an empty folder. The
# environment holds the wheel without extras, so commands that need one must name it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

asks_for() {
  local extra=$1 output
  shift
  if output=$("$@" 2>&1) || ! grep -qF "rankwright[$extra]" <<<"$output"; then
    echo "without the extra $extra: $*: $output" >&2
    exit 1
  fi
}

set -x
rankwright --version
rankwright --help >/dev/null
ranklib >/dev/null
rankwright convert digits/train train.txt --read queries=8 --read documents=15
rankwright convert digits/valid vali.txt --read queries=8 --read documents=15
rankwright convert train.txt train.parquet
rankwright train gbdt --train train.txt --valid vali.txt --set n_estimators=5 --save model.rw
rankwright evaluate vali.txt --load model.rw
rankwright rank model.rw vali.txt -o run.txt
rankwright export model.rw --to json -o exported
rankwright verify exported
rankwright compare train.txt --rankers gbdt,linear_regression --folds 3 -o report.html
rankwright compare train.txt --rankers gbdt,first=column:1 --folds 3 -o table.tex

asks_for neural rankwright train ranknet --train train.txt --set epochs=1 --save net.rw
asks_for tune rankwright tune gbdt --train train.txt --valid vali.txt --trials 2
asks_for serve rankwright serve model.rw --port 0
asks_for onnx rankwright export model.rw --to onnx -o onnx
