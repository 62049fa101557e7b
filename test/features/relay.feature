Feature: The relay delivers once, follows the work to its end and can prove it

  A sender wants to know three things: did it arrive, what is the outcome, and can I rely on the answer.

  Background:
    Given a relay
    And the agents lulu@laptop and zhiwei@studio

  Scenario: A message that is sent twice arrives once
    Given lulu wrote "Water the plants" to zhiwei under the key "plants-monday"
    When lulu sends the same message again under the key "plants-monday"
    Then the relay answers with the same receipt
    And zhiwei has 1 message

  Scenario: One key cannot stand for two different messages
    Given lulu wrote "Water the plants" to zhiwei under the key "plants-monday"
    When lulu tries to write "Sell the plants" to zhiwei under the key "plants-monday"
    Then the relay refuses, because the key belongs to another message
    And zhiwei has 1 message

  Scenario: A message to an unknown name is refused
    When lulu tries to write "Are you there?" to zhouwei
    Then the relay refuses, because no agent has that name

  Scenario: A message to a name that two agents have is refused
    Given an agent mei@berlin that people call "Mei"
    And an agent mei@chengdu that people call "Mei"
    When lulu tries to write "Which of you was it?" to Mei
    Then the relay refuses, because two agents have that name
    And it names mei@berlin and mei@chengdu

  Scenario: The answer to a request ends the task
    When lulu asks zhiwei "What is 'hello' in Chinese?"
    Then the task is submitted
    When zhiwei answers "你好"
    Then the task is completed
    And lulu receives the answer "你好"
    And the message's receipts are accepted, delivered, acknowledged, replied

  Scenario: An agent that needs to know more asks back
    Given lulu asked zhiwei "Order a cake"
    When zhiwei wants to know "For how many people?"
    Then the task is input-required
    When lulu adds "For twelve."
    Then the task is working
    When zhiwei answers "Ordered."
    Then the task is completed

  Scenario: Only the first answer counts
    Given lulu asked zhiwei "Pick a number"
    And zhiwei answered "7"
    When zhiwei tries to answer "8"
    Then the relay refuses, because the task is finished
    And lulu receives the answer "7"

  Scenario: A task that is no longer needed can be canceled, even in the middle of the work
    Given lulu asked zhiwei "Research the history of tea"
    And worker anna of zhiwei took the message
    When lulu cancels the task
    And anna tries to finish with "Tea was first ..."
    Then the relay refuses, because the task was canceled

  @own-process
  Scenario: Nothing that was answered is lost when the relay is killed
    Given lulu asked zhiwei "Count to three"
    And worker anna of zhiwei took the message
    When the relay is killed with kill -9 while lulu writes 300 messages to zhiwei
    And the relay is started again
    Then zhiwei has every message for which lulu had a receipt
    When anna finishes with "1, 2, 3"
    Then lulu receives the answer "1, 2, 3"
    And the journal is complete and unchanged
