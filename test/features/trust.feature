Feature: Everybody is who they say, and may do what they were allowed

  Each agent holds its own key. What it sends, reads and answers follows from that key, and where an
  organisation wants it so, giving and answering work needs a permission that was granted.

  Background:
    Given a relay that asks for keys
    And the agents lulu@laptop, zhiwei@studio and kames@desk with their own keys

  Scenario: No caller gets in without a key
    When a caller without a key lists the agents
    Then the relay refuses, because it does not know them
    When a caller with the key "key_none.zzzz" lists the agents
    Then the relay refuses, because it does not know them

  Scenario: An agent cannot write in another's name
    When lulu's key tries to write "I am kames" from kames to zhiwei
    Then the relay refuses, because that is not allowed
    And the journal has an access.denied event by lulu@laptop
    And zhiwei has 0 messages

  Scenario: An agent cannot read another's messages
    Given lulu wrote "Only for you, 知微" to zhiwei with its own key
    When kames's key reads the mailbox of zhiwei
    Then the relay refuses, because that is not allowed
    And zhiwei's key finds "Only for you, 知微"

  Scenario: A key that was revoked does not open anything
    When the operator revokes lulu's key
    And lulu's key tries to write "Still me" from lulu to zhiwei
    Then the relay refuses, because it does not know them

  Scenario: A rotated key goes on for a while beside the new one
    When the operator rotates lulu's key with an overlap of 1 hours
    Then lulu's old key and its new one both work
    When 2 hours pass
    Then only lulu's new key works

  Scenario: Two organisations have agents of the same name and never meet
    Given the organisation acme with an agent lulu@laptop
    When acme's lulu lists the agents
    Then it finds only lulu@laptop
    When acme's lulu tries to write "Hello?" to zhiwei@studio
    Then the relay refuses, because no agent has that name

  Scenario: Work needs a permission where capabilities are on
    Given capabilities are on
    When lulu's key asks zhiwei "What is 'hello' in Chinese?"
    Then the relay refuses, because that is not allowed
    And the journal has a failed capability_check for a2a-send:zhiwei@studio
    When the operator grants lulu a2a.send.zhiwei@studio
    And the operator grants zhiwei a2a.recv.lulu@laptop
    And lulu's key asks zhiwei "What is 'hello' in Chinese?"
    Then the task is submitted
    And the journal has a passed capability_check for a2a-send:zhiwei@studio

  Scenario: An answer needs a permission too
    Given capabilities are on
    And the operator grants lulu a2a.send.zhiwei@studio
    And the operator grants zhiwei a2a.recv.lulu@laptop
    And lulu's key asks zhiwei "What is 'tea' in Chinese?"
    When zhiwei's key answers "茶"
    Then the relay refuses, because that is not allowed
    When the operator grants zhiwei a2a.respond.lulu@laptop
    And zhiwei's key answers "茶"
    Then the task is completed

  Scenario: No agent grants itself a permission
    Given capabilities are on
    When lulu's key grants lulu a2a.send.zhiwei@studio
    Then the relay refuses, because that is not allowed

  Scenario: A permission for one use is used once
    Given capabilities are on
    And the operator grants lulu a2a.send.zhiwei@studio for 1 use
    And the operator grants zhiwei a2a.recv.lulu@laptop
    When lulu's key asks zhiwei "Once"
    Then the task is submitted
    When lulu's key asks zhiwei "Twice"
    Then the relay refuses, because that is not allowed

  Scenario: Work that was sent as a message is taken and answered on the task-queue wire
    Given lulu's key asks zhiwei "What is 'moon' in Chinese?"
    When zhiwei takes the next task on the task-queue wire
    Then it is "What is 'moon' in Chinese?" from lulu@laptop
    When zhiwei posts the result "月亮" on the task-queue wire
    Then the task is completed
    And lulu receives the answer "月亮" with its own key

  Scenario: Everything that was refused can be proved afterwards
    When lulu's key tries to write "I am kames" from kames to zhiwei
    Then the journal is complete and unchanged
