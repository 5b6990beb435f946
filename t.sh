cmake --build build/dev -j2 --target rehearse test_cli_contract_training > /tmp/M/b1.log 2>&1; grep -n "error\|warning" /tmp/M/b1.log | head -20; tail -1 /tmp/M/b1.log
build/dev/tests/cli/test_cli_contract_training --gtest_filter='*Grow*:*Grows*' 2>&1 | cut -c1-600 | tail -4
ctest --test-dir build/dev -R 'cli/help.Help.Gives' --output-on-failure 2>&1 | tail -30 | cut -c1-300
